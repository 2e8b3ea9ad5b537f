// GLM and GLM-4 in a Hugging Face folder: half of each head rotates, in neighbouring pairs; gate and up are
// one matrix; GLM-4 has norms after attention and MLP.
#include "model/families/hf.h"

namespace tercet::model {
namespace {

using format::Metadata;

constexpr double kPartialFactor = 0.5;

constexpr HfTensorRule kGlmPostNorms[] = {
    {"blk.{}.post_attention_norm.weight", "model.layers.{}.post_self_attn_layernorm.weight"},
    {"blk.{}.post_ffw_norm.weight", "model.layers.{}.post_mlp_layernorm.weight"},
};

}  // namespace

std::span<const HfTensorRule> glm_rules() {
  static const auto rules = join_rules({kHfEmbedding, kHfPreNorms, kGlmPostNorms, kHfAttention, kHfFusedMlp});
  return rules;
}

Status glm_to_gguf(const HfConfig& config, HfTranslation& out) {
  TERCET_TRY(common_to_gguf(config, out));
  return rope_to_gguf(config, config_head_dim(config), out, kPartialFactor);
}

Status glm_to_config(const Metadata& metadata, Metadata& config) {
  TERCET_TRY(common_to_config(metadata, config));
  TERCET_ASSIGN(const std::string dims_key, architecture_key(metadata, "rope.dimension_count"));
  TERCET_ASSIGN(const uint64_t dims, metadata.get_uint(dims_key));
  TERCET_ASSIGN(const uint64_t head_dim, config.get_uint("head_dim"));
  if (head_dim > 0)
    config.set("partial_rotary_factor",
               static_cast<float>(static_cast<double>(dims) / static_cast<double>(head_dim)));
  return rope_to_config(metadata, config);
}

}  // namespace tercet::model
