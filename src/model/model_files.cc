#include "model/model_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "format/gguf.h"
#include "format/safetensors.h"
#include "model/families/hf.h"
#include "model/hf_config.h"
#include "model/hf_tensors.h"

namespace tercet::model {
namespace {

namespace fs = std::filesystem;
using format::GgufFile;
using format::Metadata;
using format::SafetensorsFile;

class GgufTensorReader : public TensorReader {
 public:
  explicit GgufTensorReader(std::shared_ptr<const GgufFile> file) : file_(std::move(file)) {}

  Result<TensorData> read(const TensorInfo& tensor, int64_t expert) const override {
    return TensorData{bytes(tensor, expert), nullptr};
  }
  void release(const TensorInfo& tensor, int64_t expert) const override {
    file_->release(bytes(tensor, expert));
  }
  void release_all() const override { file_->release_all(); }

 private:
  std::span<const std::byte> bytes(const TensorInfo& tensor, int64_t expert) const {
    const auto size = static_cast<size_t>(tensor.expert_bytes());
    return file_->find_tensor(tensor.name)->data.subspan(static_cast<size_t>(expert) * size, size);
  }

  std::shared_ptr<const GgufFile> file_;
};

Result<ModelFiles> open_gguf(const std::string& path) {
  TERCET_ASSIGN(GgufFile opened, GgufFile::open(path));
  const auto file = std::make_shared<const GgufFile>(std::move(opened));
  std::vector<TensorInfo> tensors;
  for (const format::GgufTensor& tensor : file->tensors())
    tensors.push_back({tensor.name, tensor.type, tensor.shape});
  // The metadata lives as long as the file.
  return ModelFiles{path, false, std::shared_ptr<const Metadata>(file, &file->metadata()),
                    TensorSource(path, std::move(tensors), std::make_shared<GgufTensorReader>(file))};
}

std::string in_folder(const std::string& folder, const char* name) {
  return (fs::path(folder) / name).string();
}

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// What the authors recommend, under GGUF's keys.
Status sampling_to_gguf(const HfConfig& generation, Metadata& metadata) {
  TERCET_ASSIGN(const bool samples, generation.get_bool_or("do_sample", true));
  if (!samples) return {};
  constexpr std::pair<const char*, const char*> kFloats[] = {{"temperature", "temp"},
                                                             {"top_p", "top_p"},
                                                             {"min_p", "min_p"},
                                                             {"repetition_penalty", "penalty_repeat"}};
  for (const auto& [from, to] : kFloats) {
    if (!generation.has(from)) continue;
    TERCET_ASSIGN(const double value, generation.get_float(from));
    metadata.set(std::string("general.sampling.") + to, static_cast<float>(value));
  }
  if (!generation.has("top_k")) return {};
  TERCET_ASSIGN(const int64_t k, generation.get_int("top_k"));
  metadata.set("general.sampling.top_k", static_cast<int32_t>(std::clamp<int64_t>(k, 0, INT32_MAX)));
  return {};
}

// How sentence-transformers pools, under GGUF's key.
Status pooling_to_gguf(const HfConfig& pooling, HfTranslation& out) {
  constexpr std::pair<const char*, uint32_t> kModes[] = {
      {"pooling_mode_mean_tokens", 1}, {"pooling_mode_cls_token", 2}, {"pooling_mode_lasttoken", 3}};
  for (const auto& [field, type] : kModes) {
    TERCET_ASSIGN(const bool chosen, pooling.get_bool_or(field, false));
    if (chosen) out.metadata.set(out.key("pooling_type"), type);
  }
  return {};
}

// A folder's last name, also of "models/name/".
std::string folder_name(const std::string& path) {
  return (fs::absolute(path) / "").lexically_normal().parent_path().filename().string();
}

// The output layer that the config says is tied to the embedding is left out, also where the file has one.
Status tie_output(const HfConfig& config, const SafetensorsFile& file, std::vector<HfTensorRule>& rules) {
  if (!config.has("tie_word_embeddings")) return {};
  TERCET_ASSIGN(const bool tied, config.get_bool("tie_word_embeddings"));
  const auto output = std::find_if(rules.begin(), rules.end(),
                                   [](const HfTensorRule& rule) { return rule.gguf == "output.weight"; });
  if (output == rules.end()) return {};
  if (!tied && file.find(output->hf) == nullptr)
    return Error{
        ErrorCode::kCorrupt,
        fmt::format("the tensor {} is missing, and the config says that it is not tied to the embedding",
                    output->hf),
        file.path()};
  if (tied) rules.erase(output);
  return {};
}

Result<ModelFiles> open_folder(const std::string& path) {
  const std::string config_path = in_folder(path, "config.json");
  if (!exists(config_path))
    return Error{ErrorCode::kNotFound,
                 "has no config.json: a Hugging Face folder holds config.json and .safetensors files", path};
  TERCET_ASSIGN(const HfConfig config, HfConfig::open(config_path));
  TERCET_ASSIGN(const HfFamily* family, hf_family(config));
  TERCET_ASSIGN(HfTranslation translation, translate_config(*family, config));
  translation.metadata.set("general.name", folder_name(path));
  if (const std::string generation = in_folder(path, "generation_config.json"); exists(generation)) {
    TERCET_ASSIGN(const HfConfig defaults, HfConfig::open(generation));
    TERCET_TRY(sampling_to_gguf(defaults, translation.metadata));
  }
  if (const std::string pooling = in_folder(path, "1_Pooling/config.json"); exists(pooling)) {
    TERCET_ASSIGN(const HfConfig mode, HfConfig::open(pooling));
    TERCET_TRY(pooling_to_gguf(mode, translation));
  }
  TERCET_ASSIGN(SafetensorsFile opened, SafetensorsFile::open(path));
  const auto file = std::make_shared<const SafetensorsFile>(std::move(opened));
  const auto family_rules = family->rules();
  std::vector<HfTensorRule> rules(family_rules.begin(), family_rules.end());
  TERCET_TRY(tie_output(config, *file, rules));
  auto metadata = std::make_shared<const Metadata>(std::move(translation.metadata));
  TERCET_ASSIGN(TensorSource tensors,
                hf_tensor_source(file, rules, *metadata, std::move(translation.computed)));
  return ModelFiles{path, true, std::move(metadata), std::move(tensors)};
}

}  // namespace

Result<ModelFiles> open_model_files(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error) ? open_folder(path) : open_gguf(path);
}

Result<std::vector<int32_t>> folder_end_tokens(const std::string& path) {
  std::vector<int32_t> ids;
  for (const char* name : {"generation_config.json", "config.json"}) {
    const std::string file = in_folder(path, name);
    if (!exists(file)) continue;
    TERCET_ASSIGN(const HfConfig config, HfConfig::open(file));
    if (!config.has("eos_token_id")) continue;
    TERCET_ASSIGN(const std::vector<int64_t> found, config.get_ints("eos_token_id"));
    for (const int64_t id : found) {
      if (id < 0 || id > INT32_MAX)
        return config.error(ErrorCode::kInvalidArgument, "eos_token_id", fmt::format("{} is no token", id));
      ids.push_back(static_cast<int32_t>(id));
    }
    break;
  }
  return ids;
}

}  // namespace tercet::model
