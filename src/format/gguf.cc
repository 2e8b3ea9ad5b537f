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
  TERCET_ASSIGN(const uint64_t count, file.metadata_.get_uint_or("split.count", 1));
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
    metadata_ = std::move(contents.metadata);
    return {};
  }
  for (const char* key : {"split.no", "split.count"})
    if (!contents.metadata.has(key))
      return Error{ErrorCode::kCorrupt, fmt::format("has no {}, so it is no shard of {}", key, path_), name};
  TERCET_ASSIGN(const uint64_t number, contents.metadata.get_uint("split.no"));
  TERCET_ASSIGN(const uint64_t count, contents.metadata.get_uint("split.count"));
  TERCET_ASSIGN(const uint64_t expected_count, metadata_.get_uint("split.count"));
  if (number == shard && count == expected_count) return {};
  return Error{
      ErrorCode::kCorrupt,
      fmt::format("holds shard {} of {}, and its name says {} of {}: the shards are out of order or renamed",
                  number + 1, count, shard + 1, expected_count),
      name};
}

Status GgufFile::open_other_shards() {
  TERCET_ASSIGN(const uint64_t count, metadata_.get_uint_or("split.count", 1));
  if (count <= 1) return {};
  TERCET_ASSIGN(const uint64_t number, metadata_.get_uint("split.no"));
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
  TERCET_ASSIGN(const uint64_t expected, metadata_.get_uint_or("split.tensors.count", tensors_.size()));
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

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  const auto found =
      std::lower_bound(tensors_by_name_.begin(), tensors_by_name_.end(), name,
                       [&](uint32_t i, std::string_view wanted) { return tensors_[i].name < wanted; });
  return found != tensors_by_name_.end() && tensors_[*found].name == name ? &tensors_[*found] : nullptr;
}

void GgufFile::release(std::span<const std::byte> part) const {
  for (const MappedFile& mapping : mappings_) mapping.release(part);
}

void GgufFile::release_all() const {
  for (const MappedFile& mapping : mappings_) mapping.release(mapping.bytes());
}

}  // namespace tercet::format
