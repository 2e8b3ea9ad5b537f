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
#include "tensor/dtype.h"

namespace tercet::format {

// Metadata value types; the numeric values are the format's.
enum class GgufType : uint8_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

std::string_view gguf_type_name(GgufType type);

// One metadata entry. `encoded` holds its `count` items of `item_type` as they lie in the file, without a
// header.
struct GgufEntry {
  std::string_view key;
  GgufType item_type = GgufType::kUint8;  // never kArray
  bool is_array = false;
  uint64_t count = 1;
  std::span<const std::byte> encoded;
};

// The items of an entry. The caller has looked at item_type (TERCET_CHECK): `decode_ints` wants an integer
// type or bool, `decode_floats` a float type, `decode_strings` kString. At most `limit` items are decoded. A
// uint64 above 2^63-1 wraps.
std::vector<int64_t> decode_ints(const GgufEntry& entry, uint64_t limit = UINT64_MAX);
std::vector<double> decode_floats(const GgufEntry& entry, uint64_t limit = UINT64_MAX);
std::vector<std::string_view> decode_strings(const GgufEntry& entry, uint64_t limit = UINT64_MAX);

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

  // In file order; those of the first shard.
  std::span<const GgufEntry> entries() const { return entries_; }
  // nullptr where the key is absent.
  const GgufEntry* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }

  // The value of a key that must be there: kNotFound where it is absent, kInvalidArgument where it has
  // another type or does not fit. Integers may have any width; floats are float32 or float64.
  Result<uint64_t> get_uint(std::string_view key) const;
  Result<int64_t> get_int(std::string_view key) const;
  Result<double> get_float(std::string_view key) const;
  Result<bool> get_bool(std::string_view key) const;
  Result<std::string_view> get_string(std::string_view key) const;
  // Arrays. For integers a single value counts as an array of one (keys such as head_count_kv come both
  // ways).
  Result<std::vector<int64_t>> get_ints(std::string_view key) const;
  Result<std::vector<double>> get_floats(std::string_view key) const;
  Result<std::vector<std::string_view>> get_strings(std::string_view key) const;

  // The same with a value for an absent key; another type is still an error.
  Result<uint64_t> get_uint_or(std::string_view key, uint64_t fallback) const;
  Result<int64_t> get_int_or(std::string_view key, int64_t fallback) const;
  Result<double> get_float_or(std::string_view key, double fallback) const;
  Result<bool> get_bool_or(std::string_view key, bool fallback) const;
  Result<std::string_view> get_string_or(std::string_view key, std::string_view fallback) const;

  // In file order, shard after shard.
  std::span<const GgufTensor> tensors() const { return tensors_; }
  // nullptr where there is none of that name.
  const GgufTensor* find_tensor(std::string_view name) const;
  // Lets go of the resident pages under a tensor, or under the whole file, after the data has been used; they
  // are read again on the next access.
  void release(const GgufTensor& tensor) const;
  void release_all() const;

 private:
  GgufFile() = default;
  Status add_shard(std::span<const std::byte> bytes, const std::string& name);
  Status open_other_shards();
  Status check_split_tensor_count() const;
  Status index_tensors();
  Result<const GgufEntry*> require(std::string_view key) const;
  Error wrong_type(const GgufEntry& entry, std::string_view expected) const;

  std::string path_;
  uint32_t version_ = 0;
  uint64_t file_bytes_ = 0;
  std::vector<MappedFile> mappings_;  // empty when opened from memory
  std::vector<std::span<const std::byte>> shards_;
  std::vector<GgufEntry> entries_;
  std::vector<GgufTensor> tensors_;
  std::vector<uint32_t> entries_by_key_;   // indices, sorted by key
  std::vector<uint32_t> tensors_by_name_;  // indices, sorted by name
};

}  // namespace tercet::format
