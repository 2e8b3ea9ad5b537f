#include "format/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "format/gguf_bytes.h"

namespace tercet::format {
namespace {

constexpr std::string_view kTypeNames[] = {"uint8",  "int8",    "uint16", "int16",  "uint32",
                                           "int32",  "float32", "bool",   "string", "array",
                                           "uint64", "int64",   "float64"};

bool is_integer(GgufType type) {
  return type != GgufType::kFloat32 && type != GgufType::kFloat64 && type != GgufType::kBool &&
         type != GgufType::kString;
}

bool is_float(GgufType type) { return type == GgufType::kFloat32 || type == GgufType::kFloat64; }

std::string describe_type(const GgufEntry& entry) {
  const std::string name(gguf_type_name(entry.item_type));
  return entry.is_array ? fmt::format("an array of {} {}", entry.count, name) : name;
}

template <class Stored, class T>
void decode_as(const GgufEntry& entry, std::vector<T>& items) {
  for (size_t i = 0; i < items.size(); ++i) {
    Stored item;
    std::memcpy(&item, entry.encoded.data() + i * sizeof(Stored), sizeof(Stored));
    items[i] = static_cast<T>(item);
  }
}

}  // namespace

std::string_view gguf_type_name(GgufType type) { return kTypeNames[static_cast<size_t>(type)]; }

std::vector<int64_t> decode_ints(const GgufEntry& entry, uint64_t limit) {
  std::vector<int64_t> items(std::min(entry.count, limit));
  switch (entry.item_type) {
    case GgufType::kBool:
    case GgufType::kUint8: return decode_as<uint8_t>(entry, items), items;
    case GgufType::kInt8: return decode_as<int8_t>(entry, items), items;
    case GgufType::kUint16: return decode_as<uint16_t>(entry, items), items;
    case GgufType::kInt16: return decode_as<int16_t>(entry, items), items;
    case GgufType::kUint32: return decode_as<uint32_t>(entry, items), items;
    case GgufType::kInt32: return decode_as<int32_t>(entry, items), items;
    case GgufType::kUint64:
    case GgufType::kInt64: return decode_as<int64_t>(entry, items), items;
    default: check_failed("the items are integers", __FILE__, __LINE__, entry.key);
  }
}

std::vector<double> decode_floats(const GgufEntry& entry, uint64_t limit) {
  TERCET_CHECK(is_float(entry.item_type));
  std::vector<double> items(std::min(entry.count, limit));
  if (entry.item_type == GgufType::kFloat32) {
    decode_as<float>(entry, items);
  } else {
    decode_as<double>(entry, items);
  }
  return items;
}

std::vector<std::string_view> decode_strings(const GgufEntry& entry, uint64_t limit) {
  TERCET_CHECK(entry.item_type == GgufType::kString);
  std::vector<std::string_view> items(std::min(entry.count, limit));
  const std::byte* position = entry.encoded.data();
  for (auto& item : items) {
    uint64_t length;
    std::memcpy(&length, position, sizeof length);
    item = {reinterpret_cast<const char*>(position) + sizeof length, length};
    position += sizeof length + length;
  }
  return items;
}

size_t gguf_item_bytes(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kInt8:
    case GgufType::kBool: return 1;
    case GgufType::kUint16:
    case GgufType::kInt16: return 2;
    case GgufType::kUint32:
    case GgufType::kInt32:
    case GgufType::kFloat32: return 4;
    case GgufType::kUint64:
    case GgufType::kInt64:
    case GgufType::kFloat64: return 8;
    case GgufType::kString:
    case GgufType::kArray: return 0;
  }
  return 0;
}

Result<Metadata> Metadata::from_entries(std::string source, std::vector<GgufEntry> entries) {
  Metadata result(std::move(source));
  result.entries_ = std::move(entries);
  std::vector<uint32_t>& index = result.by_key_;
  index.resize(result.entries_.size());
  std::iota(index.begin(), index.end(), 0);
  const auto key = [&](uint32_t i) { return result.entries_[i].key; };
  std::sort(index.begin(), index.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  const auto twice = std::adjacent_find(index.begin(), index.end(),
                                        [&](uint32_t a, uint32_t b) { return key(a) == key(b); });
  if (twice != index.end())
    return Error{ErrorCode::kCorrupt, fmt::format("the metadata key {} appears twice", quote(key(*twice))),
                 result.source_};
  return result;
}

std::vector<uint32_t>::const_iterator Metadata::position(std::string_view key) const {
  return std::lower_bound(by_key_.begin(), by_key_.end(), key,
                          [&](uint32_t i, std::string_view wanted) { return entries_[i].key < wanted; });
}

const GgufEntry* Metadata::find(std::string_view key) const {
  const auto found = position(key);
  return found != by_key_.end() && entries_[*found].key == key ? &entries_[*found] : nullptr;
}

void Metadata::set(std::string_view key, std::string_view value) {
  std::string encoded;
  append_string(encoded, value);
  set_encoded(key, GgufType::kString, std::nullopt, encoded);
}

void Metadata::set(std::string_view key, std::span<const int32_t> values) {
  set_encoded(key, GgufType::kInt32, values.size(), as_chars(values));
}

void Metadata::set(std::string_view key, std::span<const uint32_t> values) {
  set_encoded(key, GgufType::kUint32, values.size(), as_chars(values));
}

void Metadata::set(std::string_view key, std::span<const float> values) {
  set_encoded(key, GgufType::kFloat32, values.size(), as_chars(values));
}

void Metadata::set(std::string_view key, std::span<const std::string> values) {
  std::string encoded;
  for (const std::string& value : values) append_string(encoded, value);
  set_encoded(key, GgufType::kString, values.size(), encoded);
}

void Metadata::set_bools(std::string_view key, const std::vector<bool>& values) {
  set_encoded(key, GgufType::kBool, values.size(), std::string(values.begin(), values.end()));
}

void Metadata::set(const GgufEntry& entry) {
  set_encoded(entry.key, entry.item_type, entry.is_array ? std::optional(entry.count) : std::nullopt,
              as_chars(entry.encoded));
}

void Metadata::set_encoded(std::string_view key, GgufType item_type, std::optional<uint64_t> array_count,
                           std::string_view encoded) {
  TERCET_CHECK(!has(key));
  by_key_.insert(position(key), static_cast<uint32_t>(entries_.size()));
  const std::string& kept_key = storage_.emplace_back(key);
  const std::string& kept_value = storage_.emplace_back(encoded);
  entries_.push_back({kept_key, item_type, array_count.has_value(), array_count.value_or(1),
                      std::as_bytes(std::span(kept_value))});
}

Result<const GgufEntry*> Metadata::require(std::string_view key) const {
  if (const GgufEntry* entry = find(key)) return entry;
  return Error{ErrorCode::kNotFound, fmt::format("has no metadata key {}", quote(key)), source_};
}

Error Metadata::wrong_type(const GgufEntry& entry, std::string_view expected) const {
  return {ErrorCode::kInvalidArgument,
          fmt::format("{} is {}; {} is expected", quote(entry.key), describe_type(entry), expected), source_};
}

Result<uint64_t> Metadata::get_uint(std::string_view key) const {
  TERCET_ASSIGN(const GgufEntry* entry, require(key));
  if (entry->is_array || !is_integer(entry->item_type)) return wrong_type(*entry, "an integer from 0");
  const int64_t value = decode_ints(*entry).front();
  if (value < 0 && entry->item_type != GgufType::kUint64)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is {}; an integer from 0 is expected", quote(entry->key), value), source_};
  return static_cast<uint64_t>(value);
}

Result<int64_t> Metadata::get_int(std::string_view key) const {
  TERCET_ASSIGN(const GgufEntry* entry, require(key));
  if (entry->is_array) return wrong_type(*entry, "an integer");
  TERCET_ASSIGN(const auto values, get_ints(key));
  return values.front();
}

Result<double> Metadata::get_float(std::string_view key) const {
  TERCET_ASSIGN(const GgufEntry* entry, require(key));
  if (entry->is_array || !is_float(entry->item_type)) return wrong_type(*entry, "a float");
  return decode_floats(*entry).front();
}

Result<bool> Metadata::get_bool(std::string_view key) const {
  TERCET_ASSIGN(const GgufEntry* entry, require(key));
  if (entry->is_array || entry->item_type != GgufType::kBool) return wrong_type(*entry, "a bool");
  return decode_ints(*entry).front() != 0;
}

Result<std::string_view> Metadata::get_string(std::string_view key) const {
  TERCET_ASSIGN(const GgufEntry* entry, require(key));
  if (entry->is_array || entry->item_type != GgufType::kString) return wrong_type(*entry, "a string");
  return decode_strings(*entry).front();
}

Result<std::vector<int64_t>> Metadata::get_ints(std::string_view key, bool allow_bools) const {
  TERCET_ASSIGN(const GgufEntry* entry, require(key));
  if (!is_integer(entry->item_type) && !(allow_bools && entry->item_type == GgufType::kBool))
    return wrong_type(*entry, "an array of integers");
  std::vector<int64_t> values = decode_ints(*entry);
  const bool wrapped = entry->item_type == GgufType::kUint64 &&
                       std::any_of(values.begin(), values.end(), [](int64_t v) { return v < 0; });
  if (wrapped)
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} holds a number above 2^63-1", quote(key)),
                 source_};
  return values;
}

Result<std::vector<double>> Metadata::get_floats(std::string_view key) const {
  TERCET_ASSIGN(const GgufEntry* entry, require(key));
  if (!entry->is_array || !is_float(entry->item_type)) return wrong_type(*entry, "an array of floats");
  return decode_floats(*entry);
}

Result<std::vector<std::string_view>> Metadata::get_strings(std::string_view key) const {
  TERCET_ASSIGN(const GgufEntry* entry, require(key));
  if (!entry->is_array || entry->item_type != GgufType::kString)
    return wrong_type(*entry, "an array of strings");
  return decode_strings(*entry);
}

Result<uint64_t> Metadata::get_uint_or(std::string_view key, uint64_t fallback) const {
  return has(key) ? get_uint(key) : fallback;
}

Result<int64_t> Metadata::get_int_or(std::string_view key, int64_t fallback) const {
  return has(key) ? get_int(key) : fallback;
}

Result<double> Metadata::get_float_or(std::string_view key, double fallback) const {
  return has(key) ? get_float(key) : fallback;
}

Result<bool> Metadata::get_bool_or(std::string_view key, bool fallback) const {
  return has(key) ? get_bool(key) : fallback;
}

Result<std::string_view> Metadata::get_string_or(std::string_view key, std::string_view fallback) const {
  return has(key) ? get_string(key) : fallback;
}

std::string quote(std::string_view text) {
  constexpr size_t kLongest = 80;
  std::string result = "\"";
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') result += '\\';
    if (byte < 0x20 || byte >= 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result + (text.size() > kLongest ? "...\"" : "\"");
}

}  // namespace tercet::format
