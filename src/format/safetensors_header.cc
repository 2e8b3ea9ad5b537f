#include "format/safetensors_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "format/metadata.h"

namespace tercet::format {
namespace {

using nlohmann::json;

struct DtypeBits {
  std::string_view name;
  int bits;
};
constexpr DtypeBits kDtypes[] = {
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},   {"I8", 8},    {"F8_E5M2", 8},
    {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16}, {"BF16", 16}, {"I32", 32},
    {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},    {"I64", 64}, {"U64", 64},
};

struct Entry {
  std::string name;
  std::optional<std::string> dtype;
  std::optional<std::vector<int64_t>> shape;
  std::optional<std::vector<uint64_t>> offsets;
};

// Takes the header's JSON apart while it is parsed, so that nothing but the expected shape is ever built: an
// object of tensors, each an object of "dtype", "shape" and "data_offsets", and "__metadata__", an object of
// strings. Whatever else turns up ends the parse with a message.
class HeaderReader : public nlohmann::json_sax<json> {
 public:
  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;
  std::string error;  // empty: none

  bool start_object(size_t) override {
    if (place_ == Place::kStart) return place_ = Place::kNames, true;
    if (place_ == Place::kValue) return place_ = in_metadata_ ? Place::kMetadata : Place::kFields, true;
    return unexpected("an object");
  }
  bool key(string_t& name) override {
    if (place_ == Place::kNames) return begin_entry(name);
    if (place_ == Place::kMetadata) {
      field_ = name;
      return metadata.contains(name) ? fail(fmt::format("the metadata key {} appears twice", quote(name)))
                                     : true;
    }
    field_ = name;
    const Entry& entry = entries.back();
    const bool known = name == "dtype" || name == "shape" || name == "data_offsets";
    if (!known)
      return fail(fmt::format("tensor {} has the unknown field {}", quote(entry.name), quote(name)));
    if ((name == "dtype" && entry.dtype) || (name == "shape" && entry.shape) ||
        (name == "data_offsets" && entry.offsets))
      return fail(fmt::format("tensor {} has the field {} twice", quote(entry.name), quote(name)));
    return true;
  }
  bool end_object() override {
    if (place_ == Place::kNames) return place_ = Place::kEnd, true;
    place_ = Place::kNames;
    return true;
  }
  bool start_array(size_t) override {
    if (place_ != Place::kFields || field_ == "dtype") return unexpected("an array");
    place_ = Place::kNumbers;
    if (field_ == "shape") {
      entries.back().shape.emplace();
    } else {
      entries.back().offsets.emplace();
    }
    return true;
  }
  bool end_array() override { return place_ = Place::kFields, true; }
  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) return metadata[field_] = value, true;
    if (place_ != Place::kFields || field_ != "dtype") return unexpected("a string");
    entries.back().dtype = value;
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::kNumbers) return unexpected(fmt::format("the number {}", value));
    Entry& entry = entries.back();
    if (field_ == "data_offsets") return entry.offsets->push_back(value), true;
    if (value > INT64_MAX)
      return fail(fmt::format("tensor {} has a dimension of {}", quote(entry.name), value));
    return entry.shape->push_back(static_cast<int64_t>(value)), true;
  }
  bool number_integer(number_integer_t value) override {
    return unexpected(fmt::format("the number {}", value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    return unexpected("the number " + text);
  }
  bool boolean(bool) override { return unexpected("true or false"); }
  bool null() override { return unexpected("null"); }
  bool binary(binary_t&) override { return unexpected("binary data"); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& reason) override {
    return fail(fmt::format("is not JSON: {}", reason.what()));
  }

 private:
  enum class Place { kStart, kNames, kValue, kFields, kNumbers, kMetadata, kEnd };

  bool begin_entry(const std::string& name) {
    place_ = Place::kValue;
    in_metadata_ = name == "__metadata__";
    field_ = "";
    if (!names_.insert(name).second) return fail(fmt::format("the name {} appears twice", quote(name)));
    if (!in_metadata_) entries.push_back({name, {}, {}, {}});
    return true;
  }

  bool unexpected(const std::string& what) {
    if (place_ == Place::kStart) return fail(fmt::format("is {} and not an object of tensors", what));
    if (in_metadata_) return fail(fmt::format("__metadata__ holds {}; strings are expected", what));
    const std::string name = quote(entries.back().name);
    if (place_ == Place::kValue) return fail(fmt::format("tensor {} is {} and not an object", name, what));
    return fail(fmt::format("{} of tensor {} holds {}; expected are {}", quote(field_), name, what,
                            field_ == "dtype"   ? "a string"
                            : field_ == "shape" ? "whole numbers from 0"
                                                : "two whole numbers from 0"));
  }
  bool fail(std::string message) {
    error = std::move(message);
    return false;
  }

  Place place_ = Place::kStart;
  bool in_metadata_ = false;
  std::string field_;
  std::set<std::string, std::less<>> names_;
};

// The tensor of an entry, whose bytes must lie within `data`.
Result<SafetensorsTensor> to_tensor(const Entry& entry, std::span<const std::byte> data,
                                    const std::string& file) {
  const auto fail = [&](const std::string& message) {
    return Error{ErrorCode::kCorrupt, fmt::format("tensor {} {}", quote(entry.name), message), file};
  };
  if (!entry.dtype) return fail("has no \"dtype\"");
  if (!entry.shape) return fail("has no \"shape\"");
  if (!entry.offsets) return fail("has no \"data_offsets\"");
  if (entry.offsets->size() != 2)
    return fail(fmt::format("has {} data_offsets, expected 2", entry.offsets->size()));
  const auto* dtype = std::find_if(std::begin(kDtypes), std::end(kDtypes),
                                   [&](const DtypeBits& known) { return known.name == *entry.dtype; });
  if (dtype == std::end(kDtypes)) return fail(fmt::format("has the unknown dtype {}", quote(*entry.dtype)));
  uint64_t bits = static_cast<uint64_t>(dtype->bits);
  // A dimension of 0 would hide an overflow before it.
  bool overflow = false, empty = false;
  for (const int64_t dim : *entry.shape) {
    empty |= dim == 0;
    overflow |= __builtin_mul_overflow(bits, static_cast<uint64_t>(std::max<int64_t>(dim, 1)), &bits);
  }
  if (overflow) return fail(fmt::format("has the impossible shape [{}]", fmt::join(*entry.shape, ", ")));
  if (empty) bits = 0;
  const uint64_t begin = (*entry.offsets)[0], end = (*entry.offsets)[1];
  if (begin > end || end > data.size())
    return fail(fmt::format("lies at bytes {} to {} of the data, which has {}; is the download complete?",
                            begin, end, data.size()));
  if (bits % 8 != 0 || end - begin != bits / 8)
    return fail(fmt::format("has {} bytes for the shape [{}] in {}, which takes {} bits", end - begin,
                            fmt::join(*entry.shape, ", "), dtype->name, bits));
  return SafetensorsTensor{entry.name, dtype->name, *entry.shape, data.subspan(begin, end - begin), 0};
}

// Every byte of `data` belongs to exactly one tensor; `tensors` are sorted by their place.
Status check_cover(std::span<const SafetensorsTensor> tensors, std::span<const std::byte> data,
                   const std::string& file) {
  const std::byte* next = data.data();
  const SafetensorsTensor* last = nullptr;
  for (const SafetensorsTensor& tensor : tensors) {
    if (tensor.data.data() < next)
      return Error{ErrorCode::kCorrupt,
                   fmt::format("tensors {} and {} overlap", quote(last->name), quote(tensor.name)), file};
    if (tensor.data.data() > next)
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{} bytes before tensor {} belong to no tensor", tensor.data.data() - next,
                               quote(tensor.name)),
                   file};
    next = tensor.data.data() + tensor.data.size();
    last = &tensor;
  }
  if (next == data.data() + data.size()) return {};
  return Error{ErrorCode::kCorrupt,
               fmt::format("{} bytes after the last tensor belong to none", data.data() + data.size() - next),
               file};
}

}  // namespace

int safetensors_dtype_bits(std::string_view dtype) {
  for (const DtypeBits& known : kDtypes)
    if (known.name == dtype) return known.bits;
  return 0;
}

Result<SafetensorsHeader> parse_safetensors(std::span<const std::byte> bytes, const std::string& name) {
  const auto fail = [&](std::string message) { return Error{ErrorCode::kCorrupt, std::move(message), name}; };
  uint64_t length = 0;
  if (bytes.size() < sizeof length)
    return fail(
        fmt::format("has {} bytes; a safetensors file starts with 8 bytes that give the length of its "
                    "header",
                    bytes.size()));
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > kMaxSafetensorsHeader)
    return fail(
        fmt::format("claims a header of {} bytes, more than the {} that the format allows: not a "
                    "safetensors file",
                    length, kMaxSafetensorsHeader));
  if (length > bytes.size() - sizeof length)
    return fail(fmt::format("claims a header of {} bytes and has {}; is the download complete?", length,
                            bytes.size() - sizeof length));
  const auto text = bytes.subspan(sizeof length, length);
  const auto* begin = reinterpret_cast<const char*>(text.data());
  HeaderReader reader;
  const bool complete = json::sax_parse(begin, begin + text.size(), &reader);
  if (!complete) return fail("the header " + (reader.error.empty() ? "is not JSON" : reader.error));
  SafetensorsHeader header{std::move(reader.metadata), {}};
  const auto data = bytes.subspan(sizeof length + length);
  for (const Entry& entry : reader.entries) {
    TERCET_ASSIGN(SafetensorsTensor tensor, to_tensor(entry, data, name));
    header.tensors.push_back(std::move(tensor));
  }
  // Empty tensors go before the one that begins at the same place.
  std::stable_sort(header.tensors.begin(), header.tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.data.data(), a.data.size()) < std::pair(b.data.data(), b.data.size());
  });
  TERCET_TRY(check_cover(header.tensors, data, name));
  return header;
}

}  // namespace tercet::format
