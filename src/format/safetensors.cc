#include "format/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "format/metadata.h"
#include "format/safetensors_header.h"

namespace tercet::format {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kIndexName = "model.safetensors.index.json";

// The folder's weights where it has no index.
Result<std::string> single_file(const std::string& folder) {
  const fs::path usual = fs::path(folder) / "model.safetensors";
  std::error_code error;
  if (fs::exists(usual, error)) return usual.string();
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".safetensors") found.push_back(entry.path().string());
  if (error) return Error{ErrorCode::kIo, "cannot be listed: " + error.message(), folder};
  if (found.size() == 1) return found[0];
  return Error{
      ErrorCode::kNotFound,
      fmt::format("has neither model.safetensors nor {}{}", kIndexName,
                  found.empty() ? "" : fmt::format(", and {} other .safetensors files", found.size())),
      folder};
}

// A plain name, so that an index cannot reach out of its folder.
bool is_file_name(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.find('/') == name.npos && name.find('\\') == name.npos &&
         name.find('\0') == name.npos;
}

}  // namespace

std::optional<DType> SafetensorsTensor::type() const {
  return dtype_from_name(dtype);  // both formats spell integers and floats alike
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  SafetensorsFile file(path);
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    TERCET_TRY(file.add_file(path));
    return file;
  }
  const std::string index = (fs::path(path) / kIndexName).string();
  if (fs::exists(index, error)) {
    TERCET_TRY(file.add_indexed(path, index));
    return file;
  }
  TERCET_ASSIGN(const std::string single, single_file(path));
  TERCET_TRY(file.add_file(single));
  return file;
}

Result<SafetensorsFile> SafetensorsFile::open_bytes(std::span<const std::byte> bytes, std::string name) {
  SafetensorsFile file(std::move(name));
  TERCET_TRY(file.add_shard(bytes, file.path_));
  return file;
}

Status SafetensorsFile::add_file(const std::string& path) {
  TERCET_ASSIGN(MappedFile mapping, MappedFile::open(path));
  mappings_.push_back(std::move(mapping));
  return add_shard(mappings_.back().bytes(), path);
}

Status SafetensorsFile::add_shard(std::span<const std::byte> bytes, const std::string& name) {
  TERCET_ASSIGN(SafetensorsHeader header, parse_safetensors(bytes, name));
  const auto shard = static_cast<uint32_t>(shards_.size());
  if (shard == 0) metadata_ = std::move(header.metadata);
  shards_.push_back(name);
  file_bytes_ += bytes.size();
  for (SafetensorsTensor& tensor : header.tensors) {
    tensor.shard = shard;
    const auto [other, fresh] = by_name_.emplace(tensor.name, tensors_.size());
    if (!fresh)
      return Error{ErrorCode::kCorrupt,
                   fmt::format("holds the tensor {}, and so does {}", quote(tensor.name),
                               shards_[tensors_[other->second].shard]),
                   name};
    tensors_.push_back(std::move(tensor));
  }
  return {};
}

Status SafetensorsFile::add_indexed(const std::string& folder, const std::string& index_path) {
  TERCET_ASSIGN(const std::string text, read_file(index_path));
  TERCET_ASSIGN(const SafetensorsIndex index, parse_safetensors_index(text, index_path));
  std::set<std::string> files;
  for (const auto& [tensor, file] : index.weight_map) files.insert(file);
  for (const std::string& file : files) {
    const std::string path = (fs::path(folder) / file).string();
    const Status added = add_file(path);
    if (added.ok()) continue;
    if (added.error().code != ErrorCode::kNotFound) return added;
    return Error{ErrorCode::kNotFound,
                 fmt::format("is missing; {} lists {} files, and all of them must lie in the folder",
                             kIndexName, files.size()),
                 path};
  }
  for (const auto& [name, file] : index.weight_map) {
    const SafetensorsTensor* tensor = find(name);
    if (tensor == nullptr || fs::path(shards_[tensor->shard]).filename() != file)
      return Error{ErrorCode::kCorrupt,
                   fmt::format("says that {} holds the tensor {}, which is not there", file, quote(name)),
                   index_path};
  }
  return {};
}

const SafetensorsTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

void SafetensorsFile::release(std::span<const std::byte> part) const {
  for (const MappedFile& mapping : mappings_) mapping.release(part);
}

void SafetensorsFile::release_all() const {
  for (const MappedFile& mapping : mappings_) mapping.release(mapping.bytes());
}

Result<SafetensorsIndex> parse_safetensors_index(std::string_view text, const std::string& path) {
  const auto fail = [&](std::string message) { return Error{ErrorCode::kCorrupt, std::move(message), path}; };
  const json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) return fail("is not JSON");
  const auto map = root.is_object() ? root.find("weight_map") : root.end();
  if (!root.is_object() || map == root.end() || !map->is_object() || map->empty())
    return fail("has no \"weight_map\" of tensors and files");
  SafetensorsIndex index;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) return fail(fmt::format("names no file for the tensor {}", quote(tensor)));
    const auto& name = file.get_ref<const std::string&>();
    if (!is_file_name(name))
      return fail(
          fmt::format("places the tensor {} in {}, which is no plain file name", quote(tensor), quote(name)));
    index.weight_map.emplace(tensor, name);
  }
  return index;
}

std::string safetensors_index_json(const SafetensorsIndex& index) {
  const json root = {{"metadata", {{"total_size", index.total_bytes}}}, {"weight_map", index.weight_map}};
  return root.dump(2) + "\n";
}

}  // namespace tercet::format
