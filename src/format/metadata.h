// Metadata: typed values under keys, in order, as GGUF keeps them. They either lie in a mapped file, which
// the format's reader has checked, or are set one by one in memory (a model translated from another format, a
// file to be written).
//
// Safe to read from any thread once it is complete. Views (keys, strings) live as long as the Metadata and
// the bytes it was read from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tercet::format {

// Value types; the numeric values are GGUF's.
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

// Bytes of one item of a type of fixed size; 0 for strings and arrays.
size_t gguf_item_bytes(GgufType type);

// One metadata entry. `encoded` holds its `count` items of `item_type` as they lie in a file, without a
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

class Metadata {
 public:
  // Empty; `source` names the file in errors.
  explicit Metadata(std::string source = "") : source_(std::move(source)) {}
  // Entries whose keys and values lie in memory that outlives the result. A key that appears twice is
  // kCorrupt.
  static Result<Metadata> from_entries(std::string source, std::vector<GgufEntry> entries);

  Metadata(Metadata&&) noexcept = default;
  Metadata& operator=(Metadata&&) noexcept = default;

  const std::string& source() const { return source_; }
  std::span<const GgufEntry> entries() const { return entries_; }
  // nullptr where the key is absent.
  const GgufEntry* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }

  // Appends an entry. A key set twice is a programming error.
  void set(std::string_view key, bool value) { set_number(key, GgufType::kBool, value); }
  void set(std::string_view key, uint8_t value) { set_number(key, GgufType::kUint8, value); }
  void set(std::string_view key, int8_t value) { set_number(key, GgufType::kInt8, value); }
  void set(std::string_view key, uint16_t value) { set_number(key, GgufType::kUint16, value); }
  void set(std::string_view key, int16_t value) { set_number(key, GgufType::kInt16, value); }
  void set(std::string_view key, uint32_t value) { set_number(key, GgufType::kUint32, value); }
  void set(std::string_view key, int32_t value) { set_number(key, GgufType::kInt32, value); }
  void set(std::string_view key, uint64_t value) { set_number(key, GgufType::kUint64, value); }
  void set(std::string_view key, int64_t value) { set_number(key, GgufType::kInt64, value); }
  void set(std::string_view key, float value) { set_number(key, GgufType::kFloat32, value); }
  void set(std::string_view key, double value) { set_number(key, GgufType::kFloat64, value); }
  void set(std::string_view key, std::string_view value);
  void set(std::string_view key, const char* value) { set(key, std::string_view(value)); }
  void set(std::string_view key, std::span<const int32_t> values);
  void set(std::string_view key, std::span<const uint32_t> values);
  void set(std::string_view key, std::span<const float> values);
  void set(std::string_view key, std::span<const std::string> values);
  void set_bools(std::string_view key, const std::vector<bool>& values);
  // Copies an entry of another Metadata as it is.
  void set(const GgufEntry& entry);

  // The value of a key that must be there: kNotFound where it is absent, kInvalidArgument where it has
  // another type or does not fit. Integers may have any width; floats are float32 or float64.
  Result<uint64_t> get_uint(std::string_view key) const;
  Result<int64_t> get_int(std::string_view key) const;
  Result<double> get_float(std::string_view key) const;
  Result<bool> get_bool(std::string_view key) const;
  Result<std::string_view> get_string(std::string_view key) const;
  // Arrays. For integers a single value counts as an array of one (keys such as head_count_kv come both
  // ways); bools count as integers when `allow_bools` (sliding_window_pattern).
  Result<std::vector<int64_t>> get_ints(std::string_view key, bool allow_bools = false) const;
  Result<std::vector<double>> get_floats(std::string_view key) const;
  Result<std::vector<std::string_view>> get_strings(std::string_view key) const;

  // The same with a value for an absent key; another type is still an error.
  Result<uint64_t> get_uint_or(std::string_view key, uint64_t fallback) const;
  Result<int64_t> get_int_or(std::string_view key, int64_t fallback) const;
  Result<double> get_float_or(std::string_view key, double fallback) const;
  Result<bool> get_bool_or(std::string_view key, bool fallback) const;
  Result<std::string_view> get_string_or(std::string_view key, std::string_view fallback) const;

 private:
  template <class T>
  void set_number(std::string_view key, GgufType type, T value) {
    set_encoded(key, type, std::nullopt, {reinterpret_cast<const char*>(&value), sizeof value});
  }
  void set_encoded(std::string_view key, GgufType item_type, std::optional<uint64_t> array_count,
                   std::string_view encoded);
  // Where `key` is or would be in by_key_.
  std::vector<uint32_t>::const_iterator position(std::string_view key) const;
  Result<const GgufEntry*> require(std::string_view key) const;
  Error wrong_type(const GgufEntry& entry, std::string_view expected) const;

  std::string source_;
  std::vector<GgufEntry> entries_;
  std::vector<uint32_t> by_key_;     // indices into entries_, sorted by key
  std::deque<std::string> storage_;  // keys and values that were set; its strings do not move
};

// `text` in double quotes for a message: control and non-ASCII bytes escaped, cut after 80 bytes.
std::string quote(std::string_view text);

}  // namespace tercet::format
