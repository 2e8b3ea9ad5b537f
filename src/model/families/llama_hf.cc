// The llama architecture in a Hugging Face folder, and its near relations: Llama 2 and 3, TinyLlama, SmolLM2;
// Mistral (a window on every layer), Mixtral (experts), SmolLM3 (layers without positions), Granite
// (multipliers).
#include <fmt/format.h>

#include "model/families/hf.h"

namespace tercet::model {
namespace {

using format::Metadata;
using Kind = HfKey::Kind;

constexpr HfKey kLlamaExpertKeys[] = {
    {"num_local_experts", "expert_count", Kind::kInt, true},
    {"num_experts_per_tok", "expert_used_count", Kind::kInt, true},
};

constexpr HfKey kGranite[] = {
    {"attention_multiplier", "attention.scale", Kind::kFloat, true},
    {"embedding_multiplier", "embedding_scale", Kind::kFloat, true},
    {"residual_multiplier", "residual_scale", Kind::kFloat, true},
    {"logits_scaling", "logit_scale", Kind::kFloat, true},
};

constexpr HfTensorRule kMixtralExperts[] = {
    {"blk.{}.ffn_gate_inp.weight", "model.layers.{}.block_sparse_moe.gate.weight", HfLayout::kF32},
    {"blk.{}.ffn_gate_exps.weight", "model.layers.{}.block_sparse_moe.experts.{e}.w1.weight"},
    {"blk.{}.ffn_down_exps.weight", "model.layers.{}.block_sparse_moe.experts.{e}.w2.weight"},
    {"blk.{}.ffn_up_exps.weight", "model.layers.{}.block_sparse_moe.experts.{e}.w3.weight"},
};

}  // namespace

std::span<const HfTensorRule> llama_rules() {
  static const auto rules = join_rules({kHfEmbedding, kHfPreNorms, kHfAttentionInPairs, kHfMlp});
  return rules;
}

Status llama_to_gguf(const HfConfig& config, HfTranslation& out) {
  TERCET_TRY(common_to_gguf(config, out));
  return rope_to_gguf(config, config_head_dim(config), out);
}

Status llama_to_config(const Metadata& metadata, Metadata& config) {
  TERCET_TRY(common_to_config(metadata, config));
  return rope_to_config(metadata, config);
}

Status mistral_to_gguf(const HfConfig& config, HfTranslation& out) {
  TERCET_TRY(llama_to_gguf(config, out));
  return sliding_to_gguf(config, 0, 0, out);
}

Status mistral_to_config(const Metadata& metadata, Metadata& config) {
  TERCET_TRY(llama_to_config(metadata, config));
  // The family has windows on all layers or on none, and no layer_types.
  TERCET_ASSIGN(const uint64_t window, metadata.get_uint("llama.attention.sliding_window"));
  config.set("sliding_window", window);
  return {};
}

bool is_mistral_gguf(const Metadata& metadata) { return metadata.has("llama.attention.sliding_window"); }

std::span<const HfTensorRule> mixtral_rules() {
  static const auto rules = join_rules({kHfEmbedding, kHfPreNorms, kHfAttentionInPairs, kMixtralExperts});
  return rules;
}

Status mixtral_to_gguf(const HfConfig& config, HfTranslation& out) {
  TERCET_TRY(mistral_to_gguf(config, out));
  return copy_to_gguf(config, kLlamaExpertKeys, out);
}

Status mixtral_to_config(const Metadata& metadata, Metadata& config) {
  TERCET_TRY(is_mistral_gguf(metadata) ? mistral_to_config(metadata, config)
                                       : llama_to_config(metadata, config));
  return copy_to_config(metadata, kLlamaExpertKeys, config);
}

bool is_mixtral_gguf(const Metadata& metadata) {
  const auto experts = metadata.get_uint_or("llama.expert_count", 0);
  return experts.ok() && *experts > 0;
}

Status smollm3_to_gguf(const HfConfig& config, HfTranslation& out) {
  TERCET_TRY(llama_to_gguf(config, out));
  TERCET_ASSIGN(const bool use_window, config.get_bool_or("use_sliding_window", false));
  if (use_window) TERCET_TRY(sliding_to_gguf(config, 0, 0, out));
  if (!config.has("no_rope_layers")) return {};
  // Named for the layers without, it holds a 1 for each layer that rotates.
  TERCET_ASSIGN(const std::vector<int64_t> rotates, config.get_ints("no_rope_layers"));
  out.metadata.set_bools("tercet.rope_layers", std::vector<bool>(rotates.begin(), rotates.end()));
  return {};
}

Status smollm3_to_config(const Metadata& metadata, Metadata& config) {
  TERCET_TRY(llama_to_config(metadata, config));
  if (!metadata.has("tercet.rope_layers")) return {};
  TERCET_ASSIGN(const auto rotates, metadata.get_ints("tercet.rope_layers", /*allow_bools=*/true));
  const std::vector<int32_t> values(rotates.begin(), rotates.end());
  config.set("no_rope_layers", std::span<const int32_t>(values));
  return {};
}

Status granite_to_gguf(const HfConfig& config, HfTranslation& out) {
  TERCET_TRY(llama_to_gguf(config, out));
  return copy_to_gguf(config, kGranite, out);
}

Status granite_to_config(const Metadata& metadata, Metadata& config) {
  TERCET_TRY(llama_to_config(metadata, config));
  return copy_to_config(metadata, kGranite, config);
}

}  // namespace tercet::model
