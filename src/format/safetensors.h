// safetensors (https://github.com/huggingface/safetensors, "Format"): named tensors of a memory-mapped file,
// or of all the files that a model.safetensors.index.json lists. The header is checked whole when a file
// opens, as the reference reader does: tensors cover the data without gap or overlap. What the tensors mean
// is the model's business.
//
// Immutable after open; safe to read from any thread. Tensor data lives as long as the SafetensorsFile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "tensor/dtype.h"

namespace tercet::format {

// The reference reader's limit on the header.
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

struct SafetensorsTensor {
  std::string name;
  std::string_view dtype;      // as the format spells it: "BF16", "F8_E4M3", ...
  std::vector<int64_t> shape;  // outermost dimension first; empty for a scalar; a dimension may be 0
  std::span<const std::byte> data;
  uint32_t shard = 0;

  // The DType of the same name, where there is one.
  std::optional<DType> type() const;
};

class SafetensorsFile {
 public:
  // Opens a .safetensors file; or a folder's model.safetensors.index.json with all the files that it lists,
  // else the folder's model.safetensors, else its only .safetensors file.
  static Result<SafetensorsFile> open(const std::string& path);
  // Reads one file from memory; the caller keeps `bytes` alive. `name` stands for the path in errors.
  static Result<SafetensorsFile> open_bytes(std::span<const std::byte> bytes, std::string name);

  const std::string& path() const { return path_; }
  int num_shards() const { return static_cast<int>(shards_.size()); }
  const std::string& shard_path(uint32_t shard) const { return shards_[shard]; }
  // Bytes of all files.
  uint64_t file_bytes() const { return file_bytes_; }
  // Strings under "__metadata__", of the first file.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // In the order of their data, file after file.
  std::span<const SafetensorsTensor> tensors() const { return tensors_; }
  // nullptr where there is none of that name.
  const SafetensorsTensor* find(std::string_view name) const;

  // Lets go of the resident pages under `part`, or under everything; they are read again on the next access.
  void release(std::span<const std::byte> part) const;
  void release_all() const;

 private:
  explicit SafetensorsFile(std::string path) : path_(std::move(path)) {}
  Status add_file(const std::string& path);
  Status add_shard(std::span<const std::byte> bytes, const std::string& name);
  Status add_indexed(const std::string& folder, const std::string& index_path);

  std::string path_;
  std::vector<MappedFile> mappings_;  // empty when opened from memory
  std::vector<std::string> shards_;   // paths
  uint64_t file_bytes_ = 0;
  std::map<std::string, std::string> metadata_;
  std::vector<SafetensorsTensor> tensors_;
  std::map<std::string, size_t, std::less<>> by_name_;
};

// The names that model.safetensors.index.json gives to tensors and their files.
struct SafetensorsIndex {
  std::map<std::string, std::string> weight_map;  // tensor to file
  uint64_t total_bytes = 0;                       // of all tensors; only written, not read
};

// kCorrupt where it is no index, or where a file's name would lead out of the folder.
Result<SafetensorsIndex> parse_safetensors_index(std::string_view json, const std::string& path);
std::string safetensors_index_json(const SafetensorsIndex& index);

}  // namespace tercet::format
