// OLMo 2 in a Hugging Face folder: norms after attention and MLP and none before; norms over all heads of q
// and k.
#include "model/families/hf.h"

namespace tercet::model {
namespace {

using format::Metadata;

constexpr HfTensorRule kOlmo2PostNorms[] = {
    {"blk.{}.post_attention_norm.weight", "model.layers.{}.post_attention_layernorm.weight"},
    {"blk.{}.post_ffw_norm.weight", "model.layers.{}.post_feedforward_layernorm.weight"},
};

}  // namespace

std::span<const HfTensorRule> olmo2_rules() {
  static const auto rules = join_rules({kHfEmbedding, kOlmo2PostNorms, kHfAttention, kHfQkNorms, kHfMlp});
  return rules;
}

Status olmo2_to_gguf(const HfConfig& config, HfTranslation& out) {
  TERCET_TRY(common_to_gguf(config, out));
  return rope_to_gguf(config, config_head_dim(config), out);
}

Status olmo2_to_config(const Metadata& metadata, Metadata& config) {
  TERCET_TRY(common_to_config(metadata, config));
  return rope_to_config(metadata, config);
}

}  // namespace tercet::model
