// GGUF (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), versions 2 and 3, little endian: metadata
// and tensors of a memory-mapped file, or of all the shards of a split one. The format is checked whole when
// a file opens (every length, type, offset and overlap), so what this class hands out lies inside the file.
// What keys and tensors mean is the model's business. Nested arrays are refused.
//
// Immutable after open; safe to read from any thread. Views (keys, strings, tensor data) live as long as the
// GgufFile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "format/metadata.h"
#include "tensor/dtype.h"

namespace tercet::format {

struct GgufTensor {
  std::string name;
  DType type = DType::kF32;
  std::vector<int64_t> shape;  // GGUF's order: shape[0] is the row length; 1 to 4 dimensions, each at least 1
  std::span<const std::byte> data;  // rows of dtype_row_bytes(type, shape[0]) bytes, one after another
  uint32_t shard = 0;

  int64_t row_elements() const { return shape[0]; }
  int64_t rows() const;
};

class GgufFile {
 public:
  // Opens `path`. If it is the first shard of a split file (`...-00001-of-0000N.gguf`), opens all N.
  static Result<GgufFile> open(const std::string& path);
  // Reads one unsplit file from memory; the caller keeps `bytes` alive. `name` stands for the path in errors.
  static Result<GgufFile> open_bytes(std::span<const std::byte> bytes, std::string name);

  const std::string& path() const { return path_; }
  uint32_t version() const { return version_; }
  int num_shards() const { return static_cast<int>(shards_.size()); }
  // Bytes of all shards.
  uint64_t file_bytes() const { return file_bytes_; }

  // That of the first shard.
  const Metadata& metadata() const { return metadata_; }

  // In file order, shard after shard.
  std::span<const GgufTensor> tensors() const { return tensors_; }
  // nullptr where there is none of that name.
  const GgufTensor* find_tensor(std::string_view name) const;
  // Lets go of the resident pages under `part` (a tensor's data), or under the whole file, after it has been
  // used; they are read again on the next access.
  void release(std::span<const std::byte> part) const;
  void release_all() const;

 private:
  GgufFile() = default;
  Status add_shard(std::span<const std::byte> bytes, const std::string& name);
  Status open_other_shards();
  Status check_split_tensor_count() const;
  Status index_tensors();

  std::string path_;
  uint32_t version_ = 0;
  uint64_t file_bytes_ = 0;
  std::vector<MappedFile> mappings_;  // empty when opened from memory
  std::vector<std::span<const std::byte>> shards_;
  Metadata metadata_;
  std::vector<GgufTensor> tensors_;
  std::vector<uint32_t> tensors_by_name_;  // indices, sorted by name
};

}  // namespace tercet::format
