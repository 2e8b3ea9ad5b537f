#include "format/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "format/gguf_parse.h"

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

// "model-00001-of-00003.gguf" taken apart, as llama.cpp names shards.
struct ShardName {
  std::string prefix;  // "model"
  int number = 0;      // from 1
  int count = 0;

  std::string of(int shard) const { return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, shard, count); }
};

std::optional<ShardName> parse_shard_name(const std::string& path) {
  constexpr std::string_view kPattern = "-#####-of-#####.gguf";
  if (path.size() <= kPattern.size()) return std::nullopt;
  const size_t begin = path.size() - kPattern.size();
  for (size_t i = 0; i < kPattern.size(); ++i) {
    const char c = path[begin + i];
    if (kPattern[i] == '#' ? c < '0' || c > '9' : c != kPattern[i]) return std::nullopt;
  }
  return ShardName{path.substr(0, begin), std::stoi(path.substr(begin + 1, 5)),
                   std::stoi(path.substr(begin + 10, 5))};
}

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

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

int64_t GgufTensor::rows() const {
  return std::accumulate(shape.begin() + 1, shape.end(), int64_t{1}, std::multiplies<>());
}

Result<GgufFile> GgufFile::open(const std::string& path) {
  TERCET_ASSIGN(MappedFile mapping, MappedFile::open(path));
  GgufFile file;
  file.path_ = path;
  file.mappings_.push_back(std::move(mapping));
  TERCET_TRY(file.add_shard(file.mappings_.back().bytes(), path));
  TERCET_TRY(file.open_other_shards());
  TERCET_TRY(file.index_tensors());
  return file;
}

Result<GgufFile> GgufFile::open_bytes(std::span<const std::byte> bytes, std::string name) {
  GgufFile file;
  file.path_ = std::move(name);
  TERCET_TRY(file.add_shard(bytes, file.path_));
  TERCET_ASSIGN(const uint64_t count, file.get_uint_or("split.count", 1));
  if (count > 1)
    return Error{ErrorCode::kUnsupported, "is one shard of a split file, which cannot be read from memory",
                 file.path_};
  TERCET_TRY(file.index_tensors());
  return file;
}

// Takes over the tensors of a shard, and the metadata of the first one.
Status GgufFile::add_shard(std::span<const std::byte> bytes, const std::string& name) {
  TERCET_ASSIGN(GgufContents contents, parse_gguf(bytes, name));
  const auto shard = static_cast<uint32_t>(shards_.size());
  shards_.push_back(bytes);
  file_bytes_ += bytes.size();
  for (GgufTensor& tensor : contents.tensors) {
    tensor.shard = shard;
    tensors_.push_back(std::move(tensor));
  }
  if (shard == 0) {
    version_ = contents.version;
    entries_ = std::move(contents.entries);
    entries_by_key_ = std::move(contents.entries_by_key);
    return {};
  }
  const auto shard_key = [&](std::string_view key) -> Result<uint64_t> {
    const GgufEntry* entry = find_entry(contents.entries, contents.entries_by_key, key);
    if (entry == nullptr)
      return Error{ErrorCode::kCorrupt, fmt::format("has no {}, so it is no shard of {}", key, path_), name};
    return entry_as_uint(*entry, name);
  };
  TERCET_ASSIGN(const uint64_t number, shard_key("split.no"));
  TERCET_ASSIGN(const uint64_t count, shard_key("split.count"));
  TERCET_ASSIGN(const uint64_t expected_count, get_uint("split.count"));
  if (number == shard && count == expected_count) return {};
  return Error{
      ErrorCode::kCorrupt,
      fmt::format("holds shard {} of {}, and its name says {} of {}: the shards are out of order or renamed",
                  number + 1, count, shard + 1, expected_count),
      name};
}

Status GgufFile::open_other_shards() {
  TERCET_ASSIGN(const uint64_t count, get_uint_or("split.count", 1));
  if (count <= 1) return {};
  TERCET_ASSIGN(const uint64_t number, get_uint("split.no"));
  const auto name = parse_shard_name(path_);
  if (!name || static_cast<uint64_t>(name->count) != count)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("is shard {} of {}, and its name does not end in -00001-of-{:05}.gguf: restore "
                             "the names of the shards, "
                             "or merge them with a tool that knows GGUF (concatenating them does not work)",
                             number + 1, count, count),
                 path_};
  if (number != 0 && name->number != 1)
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("is shard {} of {}; open the first one, {}", number + 1, count, file_name(name->of(1))),
        path_};
  if (number != 0 || name->number != 1)
    return Error{
        ErrorCode::kCorrupt,
        fmt::format("holds shard {} of {}, and its name says {}: the shards are out of order or renamed",
                    number + 1, count, name->number),
        path_};
  for (int i = 2; i <= name->count; ++i) {
    const std::string shard_path = name->of(i);
    auto mapping = MappedFile::open(shard_path);
    if (!mapping.ok() && mapping.error().code == ErrorCode::kNotFound)
      return Error{
          ErrorCode::kNotFound,
          fmt::format("shard {} of {} is missing; all of them must lie in one folder", i, name->count),
          shard_path};
    if (!mapping.ok()) return std::move(mapping).error();
    mappings_.push_back(*std::move(mapping));
    TERCET_TRY(add_shard(mappings_.back().bytes(), shard_path));
  }
  return check_split_tensor_count();
}

Status GgufFile::check_split_tensor_count() const {
  TERCET_ASSIGN(const uint64_t expected, get_uint_or("split.tensors.count", tensors_.size()));
  if (expected == tensors_.size()) return {};
  return Error{ErrorCode::kCorrupt,
               fmt::format("split.tensors.count is {}, and the {} shards hold {} tensors", expected,
                           shards_.size(), tensors_.size()),
               path_};
}

Status GgufFile::index_tensors() {
  auto& index = tensors_by_name_;
  index.resize(tensors_.size());
  std::iota(index.begin(), index.end(), 0);
  const auto name = [&](uint32_t i) -> const std::string& { return tensors_[i].name; };
  std::sort(index.begin(), index.end(), [&](uint32_t a, uint32_t b) { return name(a) < name(b); });
  const auto twice = std::adjacent_find(index.begin(), index.end(),
                                        [&](uint32_t a, uint32_t b) { return name(a) == name(b); });
  if (twice != index.end())
    return Error{ErrorCode::kCorrupt, fmt::format("two tensors are named {}", quote(name(*twice))), path_};
  return {};
}

const GgufEntry* GgufFile::find(std::string_view key) const {
  return find_entry(entries_, entries_by_key_, key);
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  const auto found =
      std::lower_bound(tensors_by_name_.begin(), tensors_by_name_.end(), name,
                       [&](uint32_t i, std::string_view wanted) { return tensors_[i].name < wanted; });
  return found != tensors_by_name_.end() && tensors_[*found].name == name ? &tensors_[*found] : nullptr;
}

void GgufFile::release(const GgufTensor& tensor) const {
  if (tensor.shard >= mappings_.size()) return;
  const MappedFile& mapping = mappings_[tensor.shard];
  mapping.release(static_cast<size_t>(tensor.data.data() - mapping.bytes().data()), tensor.data.size());
}

void GgufFile::release_all() const {
  for (const MappedFile& mapping : mappings_) mapping.release(0, mapping.bytes().size());
}

Result<const GgufEntry*> GgufFile::require(std::string_view key) const {
  if (const GgufEntry* entry = find(key)) return entry;
  return Error{ErrorCode::kNotFound, fmt::format("has no metadata key {}", quote(key)), path_};
}

Error GgufFile::wrong_type(const GgufEntry& entry, std::string_view expected) const {
  return {ErrorCode::kInvalidArgument,
          fmt::format("{} is {}; {} is expected", quote(entry.key), describe_type(entry), expected), path_};
}

Result<uint64_t> entry_as_uint(const GgufEntry& entry, const std::string& name) {
  const auto fail = [&](const std::string& found) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is {}; an integer from 0 is expected", quote(entry.key), found), name};
  };
  if (entry.is_array || !is_integer(entry.item_type)) return fail(describe_type(entry));
  const int64_t value = decode_ints(entry).front();
  if (value < 0 && entry.item_type != GgufType::kUint64) return fail(std::to_string(value));
  return static_cast<uint64_t>(value);
}

Result<uint64_t> GgufFile::get_uint(std::string_view key) const {
  TERCET_ASSIGN(const GgufEntry* entry, require(key));
  return entry_as_uint(*entry, path_);
}

Result<int64_t> GgufFile::get_int(std::string_view key) const {
  TERCET_ASSIGN(const GgufEntry* entry, require(key));
  if (entry->is_array) return wrong_type(*entry, "an integer");
  TERCET_ASSIGN(const auto values, get_ints(key));
  return values.front();
}

Result<double> GgufFile::get_float(std::string_view key) const {
  TERCET_ASSIGN(const GgufEntry* entry, require(key));
  if (entry->is_array || !is_float(entry->item_type)) return wrong_type(*entry, "a float");
  return decode_floats(*entry).front();
}

Result<bool> GgufFile::get_bool(std::string_view key) const {
  TERCET_ASSIGN(const GgufEntry* entry, require(key));
  if (entry->is_array || entry->item_type != GgufType::kBool) return wrong_type(*entry, "a bool");
  return decode_ints(*entry).front() != 0;
}

Result<std::string_view> GgufFile::get_string(std::string_view key) const {
  TERCET_ASSIGN(const GgufEntry* entry, require(key));
  if (entry->is_array || entry->item_type != GgufType::kString) return wrong_type(*entry, "a string");
  return decode_strings(*entry).front();
}

Result<std::vector<int64_t>> GgufFile::get_ints(std::string_view key) const {
  TERCET_ASSIGN(const GgufEntry* entry, require(key));
  if (!is_integer(entry->item_type)) return wrong_type(*entry, "an array of integers");
  std::vector<int64_t> values = decode_ints(*entry);
  const bool wrapped = entry->item_type == GgufType::kUint64 &&
                       std::any_of(values.begin(), values.end(), [](int64_t v) { return v < 0; });
  if (wrapped)
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} holds a number above 2^63-1", quote(key)),
                 path_};
  return values;
}

Result<std::vector<double>> GgufFile::get_floats(std::string_view key) const {
  TERCET_ASSIGN(const GgufEntry* entry, require(key));
  if (!entry->is_array || !is_float(entry->item_type)) return wrong_type(*entry, "an array of floats");
  return decode_floats(*entry);
}

Result<std::vector<std::string_view>> GgufFile::get_strings(std::string_view key) const {
  TERCET_ASSIGN(const GgufEntry* entry, require(key));
  if (!entry->is_array || entry->item_type != GgufType::kString)
    return wrong_type(*entry, "an array of strings");
  return decode_strings(*entry);
}

Result<uint64_t> GgufFile::get_uint_or(std::string_view key, uint64_t fallback) const {
  return has(key) ? get_uint(key) : fallback;
}

Result<int64_t> GgufFile::get_int_or(std::string_view key, int64_t fallback) const {
  return has(key) ? get_int(key) : fallback;
}

Result<double> GgufFile::get_float_or(std::string_view key, double fallback) const {
  return has(key) ? get_float(key) : fallback;
}

Result<bool> GgufFile::get_bool_or(std::string_view key, bool fallback) const {
  return has(key) ? get_bool(key) : fallback;
}

Result<std::string_view> GgufFile::get_string_or(std::string_view key, std::string_view fallback) const {
  return has(key) ? get_string(key) : fallback;
}

}  // namespace tercet::format
