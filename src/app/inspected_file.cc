#include "app/inspected_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "format/gguf.h"
#include "format/safetensors.h"
#include "model/families/hf.h"
#include "model/hf_config.h"
#include "quant/packed.h"

namespace tercet::app {
namespace {

namespace fs = std::filesystem;
using format::GgufFile;
using format::Metadata;
using format::SafetensorsFile;

bool has_tensor(const InspectedFile& file, std::string_view name) {
  return std::any_of(file.tensors.begin(), file.tensors.end(),
                     [&](const InspectedTensor& tensor) { return tensor.name == name; });
}

// Types that take clearly more memory as packed than in the file.
void add_packing_notes(InspectedFile& file) {
  constexpr int64_t kInputs = 4096;
  std::set<DType> types;
  for (const InspectedTensor& tensor : file.tensors)
    if (tensor.type) types.insert(*tensor.type);
  for (const DType type : types) {
    const quant::PackedLayout* layout = quant::packed_layout(type);
    if (layout == nullptr) continue;
    const double packed = 8.0 * static_cast<double>(quant::panel_bytes(*layout, kInputs)) /
                          static_cast<double>(kInputs * quant::kPanelRows);
    const double in_file =
        8.0 * static_cast<double>(dtype_row_bytes(type, kInputs)) / static_cast<double>(kInputs);
    if (packed > 1.08 * in_file)
      file.notes.push_back(
          fmt::format("{} takes {:.2f} bits a weight in memory, {:.2f} in the file: it is spelled out in "
                      "{}-bit codes, which loses nothing",
                      dtype_name(type), packed, in_file, layout->bits));
  }
}

Result<InspectedFile> open_gguf(const std::string& path) {
  TERCET_ASSIGN(GgufFile opened, GgufFile::open(path));
  const auto file = std::make_shared<const GgufFile>(std::move(opened));
  InspectedFile result;
  result.path = path;
  result.format = "GGUF";
  result.version = file->version();
  result.num_shards = file->num_shards();
  result.file_bytes = file->file_bytes();
  result.metadata = std::shared_ptr<const Metadata>(file, &file->metadata());
  for (const format::GgufTensor& tensor : file->tensors())
    result.tensors.push_back(
        {tensor.name, dtype_name(tensor.type), tensor.type, tensor.shape, tensor.data, tensor.shard});
  result.release = [file](std::span<const std::byte> part) { file->release(part); };
  const Metadata& metadata = file->metadata();
  if (!metadata.has("general.architecture"))
    result.notes.push_back("general.architecture is missing: no engine can run this file");
  const auto tokenizer = metadata.get_string("tokenizer.ggml.model");
  if (tokenizer && *tokenizer == "gpt2" && !metadata.has("tokenizer.ggml.pre"))
    result.notes.push_back(
        "tokenizer.ggml.pre is missing: how text was split in training is assumed to be \"default\"");
  if (has_tensor(result, "token_embd.weight") && !has_tensor(result, "output.weight"))
    result.notes.push_back(
        "output.weight is absent: the output layer uses token_embd.weight (tied embeddings)");
  add_packing_notes(result);
  return result;
}

// The metadata that the engine makes of a folder's config.json.
Result<Metadata> folder_metadata(const std::string& folder) {
  TERCET_ASSIGN(const model::HfConfig config,
                model::HfConfig::open((fs::path(folder) / "config.json").string()));
  TERCET_ASSIGN(const model::HfFamily* family, model::hf_family(config));
  TERCET_ASSIGN(model::HfTranslation translation, model::translate_config(*family, config));
  return std::move(translation.metadata);
}

Result<InspectedFile> open_safetensors(const std::string& path, bool is_folder) {
  TERCET_ASSIGN(SafetensorsFile opened, SafetensorsFile::open(path));
  const auto file = std::make_shared<const SafetensorsFile>(std::move(opened));
  InspectedFile result;
  result.path = path;
  result.format = "safetensors";
  result.num_shards = file->num_shards();
  result.file_bytes = file->file_bytes();
  for (const format::SafetensorsTensor& tensor : file->tensors())
    result.tensors.push_back(
        {tensor.name, tensor.dtype, tensor.type(), tensor.shape, tensor.data, tensor.shard});
  result.release = [file](std::span<const std::byte> part) { file->release(part); };
  if (!is_folder) {
    Metadata metadata(path);
    for (const auto& [key, value] : file->metadata()) metadata.set(key, value);
    result.metadata = std::make_shared<const Metadata>(std::move(metadata));
    result.notes.push_back("weights alone: a model is the folder with its config.json");
    return result;
  }
  auto metadata = folder_metadata(path);
  if (!metadata.ok()) {
    result.notes.push_back("cannot be run: " + metadata.error().to_string());
    metadata = Metadata(path);
  }
  result.metadata = std::make_shared<const Metadata>(*std::move(metadata));
  std::error_code ignored;
  if (!fs::exists(fs::path(path) / "tokenizer.json", ignored))
    result.notes.push_back("tokenizer.json is missing: text cannot be turned into tokens");
  return result;
}

}  // namespace

int64_t InspectedTensor::elements() const {
  int64_t elements = 1;
  for (const int64_t dim : shape) elements *= dim;
  return elements;
}

Result<InspectedFile> open_inspected(const std::string& path) {
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  return is_folder || path.ends_with(".safetensors") ? open_safetensors(path, is_folder) : open_gguf(path);
}

}  // namespace tercet::app
