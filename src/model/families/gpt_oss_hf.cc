// gpt-oss in a Hugging Face folder: sinks, windows on every second layer, experts stacked input first with
// gate and up in alternate columns. The published files hold MXFP4, which is not read yet.
#include <fmt/format.h>

#include "model/families/hf.h"

namespace tercet::model {
namespace {

using format::Metadata;
using Kind = HfKey::Kind;

constexpr HfTensorRule kGptOssNorms[] = {
    {"blk.{}.attn_norm.weight", "model.layers.{}.input_layernorm.weight"},
    // llama.cpp's name for the norm before the MLP.
    {"blk.{}.post_attention_norm.weight", "model.layers.{}.post_attention_layernorm.weight"},
    {"blk.{}.attn_sinks.weight", "model.layers.{}.self_attn.sinks"},
};
constexpr HfTensorRule kGptOssExperts[] = {
    {"blk.{}.ffn_gate_inp.*", "model.layers.{}.mlp.router.*", HfLayout::kF32},
    {"blk.{}.ffn_gate_exps.weight", "model.layers.{}.mlp.experts.gate_up_proj", HfLayout::kEvenColumns},
    {"blk.{}.ffn_up_exps.weight", "model.layers.{}.mlp.experts.gate_up_proj", HfLayout::kOddColumns},
    {"blk.{}.ffn_gate_exps.bias", "model.layers.{}.mlp.experts.gate_up_proj_bias", HfLayout::kEvenValues},
    {"blk.{}.ffn_up_exps.bias", "model.layers.{}.mlp.experts.gate_up_proj_bias", HfLayout::kOddValues},
    {"blk.{}.ffn_down_exps.weight", "model.layers.{}.mlp.experts.down_proj", HfLayout::kTransposed},
    {"blk.{}.ffn_down_exps.bias", "model.layers.{}.mlp.experts.down_proj_bias", HfLayout::kF32},
};

constexpr HfKey kKeys[] = {
    {"num_local_experts", "expert_count", Kind::kInt, true},
    {"num_experts_per_tok", "expert_used_count", Kind::kInt, true},
    {"intermediate_size", "expert_feed_forward_length", Kind::kInt, true},
};

constexpr int64_t kPattern = 2;
// The clamped SwiGLU has these constants; GGUF has no keys for them.
constexpr double kAlpha = 1.702, kLimit = 7;

}  // namespace

std::span<const HfTensorRule> gpt_oss_rules() {
  static const auto rules = join_rules({kHfEmbedding, kGptOssNorms, kHfAttention, kGptOssExperts});
  return rules;
}

Status gpt_oss_to_gguf(const HfConfig& config, HfTranslation& out) {
  TERCET_TRY(common_to_gguf(config, out));
  TERCET_TRY(copy_to_gguf(config, kKeys, out));
  TERCET_ASSIGN(const double alpha, config.get_float_or("swiglu_alpha", kAlpha));
  TERCET_ASSIGN(const double limit, config.get_float_or("swiglu_limit", kLimit));
  if (alpha != kAlpha || limit != kLimit)
    return config.error(
        ErrorCode::kUnsupported, "swiglu_limit",
        fmt::format("{} with alpha {}; {} and {} are supported", limit, alpha, kLimit, kAlpha));
  TERCET_TRY(rope_to_gguf(config, config_head_dim(config), out));
  return sliding_to_gguf(config, kPattern, kPattern, out);
}

Status gpt_oss_to_config(const Metadata& metadata, Metadata& config) {
  TERCET_TRY(common_to_config(metadata, config));
  TERCET_TRY(copy_to_config(metadata, std::span(kKeys).first(2), config));
  config.set("swiglu_limit", static_cast<float>(kLimit));
  config.set("attention_bias", true);
  TERCET_TRY(rope_to_config(metadata, config));
  return sliding_to_config(metadata, kPattern, config);
}

}  // namespace tercet::model
