// Phi-3 in a Hugging Face folder: fused weights, longrope.
#include "model/families/hf.h"

namespace tercet::model {
namespace {

using format::Metadata;

constexpr HfTensorRule kFusedAttention[] = {
    {"blk.{}.attn_qkv.weight", "model.layers.{}.self_attn.qkv_proj.weight"},
    {"blk.{}.attn_output.weight", "model.layers.{}.self_attn.o_proj.weight"},
};

}  // namespace

std::span<const HfTensorRule> phi3_rules() {
  static const auto rules = join_rules({kHfEmbedding, kHfPreNorms, kFusedAttention, kHfFusedMlp});
  return rules;
}

Status phi3_to_gguf(const HfConfig& config, HfTranslation& out) {
  TERCET_TRY(common_to_gguf(config, out));
  TERCET_TRY(rope_to_gguf(config, config_head_dim(config), out));
  return sliding_to_gguf(config, 0, 0, out);
}

Status phi3_to_config(const Metadata& metadata, Metadata& config) {
  TERCET_TRY(common_to_config(metadata, config));
  TERCET_ASSIGN(const uint64_t window, metadata.get_uint_or("phi3.attention.sliding_window", 0));
  if (window > 0) config.set("sliding_window", window);
  return rope_to_config(metadata, config);
}

}  // namespace tercet::model
