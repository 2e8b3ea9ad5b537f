// Model families: each is one file that reads a model's metadata into a DecoderSpec, and one row of the table
// in family.cc (docs/models.md has a worked example). Metadata and tensors come under GGUF's keys and names,
// from whatever file.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "format/metadata.h"
#include "model/decoder_spec.h"
#include "model/tensor_source.h"

namespace tercet::model {

// A model as families read it. What llama.cpp has no key for stands under "tercet." (docs/models.md).
struct ModelSource {
  const format::Metadata& metadata;
  const TensorSource& tensors;

  const std::string& path() const { return tensors.path(); }
};

struct Family {
  std::string_view architecture;  // general.architecture in GGUF
  Result<DecoderSpec> (*spec)(const ModelSource& source);
};

std::span<const Family> families();

// The spec of a model, checked. An unknown architecture is an error that lists the known ones.
Result<DecoderSpec> model_spec(const ModelSource& source);

// The keys of the model's own architecture: "block_count" stands for "llama.block_count".
class ArchKeys {
 public:
  explicit ArchKeys(const ModelSource& source);

  std::string full(std::string_view name) const { return prefix_ + std::string(name); }
  bool has(std::string_view name) const { return metadata_.has(full(name)); }
  // The value of a key; `fallback` where it is absent, an error where there is no fallback. A number that
  // does not fit an int becomes -1, which check_spec refuses.
  Result<int> size(std::string_view name, std::optional<int> fallback = {}) const;
  Result<float> number(std::string_view name, std::optional<float> fallback = {}) const;

 private:
  const format::Metadata& metadata_;
  std::string prefix_;
};

struct CommonDefaults {
  bool yarn_truncate = true;  // Yarn::truncate
};

// What most decoders share: sizes, heads, norm epsilon, the scale of attention, and one rotary spec for all
// layers with the scaling that the metadata asks for (linear, YaRN, or factors that come as tensors: llama3,
// longrope). Layers are dense and have full attention.
Result<DecoderSpec> common_spec(const ModelSource& source, const CommonDefaults& defaults = {});

// Sets layers' windows where there is "attention.sliding_window". "attention.sliding_window_pattern" is a
// flag for each layer, or a period P: all layers slide but every P-th. `period` stands in for an absent one;
// 0: all layers slide.
Status read_windows(const ModelSource& source, int period, DecoderSpec& spec);

// Sets spec.moe where there is "expert_count", beginning from `router`; a layer is a mixture when it has a
// router's tensor.
Status read_mixture(const ModelSource& source, const backend::RouterSpec& router, DecoderSpec& spec);

Result<DecoderSpec> chatglm_spec(const ModelSource& source);
Result<DecoderSpec> deepseek2_spec(const ModelSource& source);
Result<DecoderSpec> gemma2_spec(const ModelSource& source);
Result<DecoderSpec> gemma3_spec(const ModelSource& source);
Result<DecoderSpec> glm4_spec(const ModelSource& source);
Result<DecoderSpec> gpt_oss_spec(const ModelSource& source);
Result<DecoderSpec> granite_spec(const ModelSource& source);
Result<DecoderSpec> llama_spec(const ModelSource& source);
Result<DecoderSpec> olmo2_spec(const ModelSource& source);
Result<DecoderSpec> phi3_spec(const ModelSource& source);
Result<DecoderSpec> qwen2_spec(const ModelSource& source);
Result<DecoderSpec> qwen3_spec(const ModelSource& source);
Result<DecoderSpec> qwen3moe_spec(const ModelSource& source);
Result<DecoderSpec> smollm3_spec(const ModelSource& source);

}  // namespace tercet::model
