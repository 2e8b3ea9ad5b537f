#include "app/inspected_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "format/gguf.h"
#include "format/safetensors.h"
#include "model/model_files.h"
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

// Bytes of keys and values of a token, in F16, if every layer attends to all tokens.
uint64_t kv_bytes_per_token(const model::DecoderSpec& spec) {
  int64_t bytes = 0;
  for (int layer = 0; layer < spec.num_layers(); ++layer)
    bytes += backend::kv_block_bytes(spec.kv_layer(layer), backend::KvType::kF16);
  return static_cast<uint64_t>(bytes) / kv::kBlockTokens;
}

// What the engine makes of the file: its metadata, empty where it cannot be read, and the size of its KV.
std::shared_ptr<const Metadata> add_engine_view(InspectedFile& file) {
  const auto files = model::open_model_files(file.path);
  const auto spec =
      files.ok() ? model::model_spec(files->source()) : Result<model::DecoderSpec>(files.error());
  if (spec.ok()) {
    file.kv_bytes_per_token = kv_bytes_per_token(*spec);
  } else {
    file.notes.push_back("cannot be run: " + spec.error().to_string());
  }
  return files.ok() ? files->metadata : std::make_shared<const Metadata>(file.path);
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
  if (metadata.has("general.architecture")) {
    add_engine_view(result);
  } else {
    result.notes.push_back("general.architecture is missing: no engine can run this file");
  }
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
  result.metadata = add_engine_view(result);
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
