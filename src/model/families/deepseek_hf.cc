// DeepSeek V2 and V3 (R1 too) in a Hugging Face folder: latent attention, groups of experts, shared experts.
// Layers that predict further tokens (after the last) are not read.
#include <fmt/format.h>

#include <algorithm>

#include "model/families/hf.h"

namespace tercet::model {
namespace {

using format::Metadata;
using Kind = HfKey::Kind;

// GGUF's expert_gating_func.
constexpr uint32_t kSoftmax = 1, kSigmoid = 2;

constexpr HfTensorRule kLatentAttention[] = {
    {"blk.{}.attn_q.*", "model.layers.{}.self_attn.q_proj.*"},
    {"blk.{}.attn_q_a.weight", "model.layers.{}.self_attn.q_a_proj.weight"},
    {"blk.{}.attn_q_a_norm.weight", "model.layers.{}.self_attn.q_a_layernorm.weight"},
    {"blk.{}.attn_q_b.weight", "model.layers.{}.self_attn.q_b_proj.weight"},
    {"blk.{}.attn_kv_a_mqa.weight", "model.layers.{}.self_attn.kv_a_proj_with_mqa.weight"},
    {"blk.{}.attn_kv_a_norm.weight", "model.layers.{}.self_attn.kv_a_layernorm.weight"},
    {"blk.{}.attn_k_b.weight", "model.layers.{}.self_attn.kv_b_proj.weight", HfLayout::kKeyUp},
    {"blk.{}.attn_v_b.weight", "model.layers.{}.self_attn.kv_b_proj.weight", HfLayout::kValueUp},
    {"blk.{}.attn_output.*", "model.layers.{}.self_attn.o_proj.*"},
};
constexpr HfTensorRule kMoreExperts[] = {
    {"blk.{}.exp_probs_b.bias", "model.layers.{}.mlp.gate.e_score_correction_bias"},
    {"blk.{}.ffn_gate_shexp.weight", "model.layers.{}.mlp.shared_experts.gate_proj.weight"},
    {"blk.{}.ffn_up_shexp.weight", "model.layers.{}.mlp.shared_experts.up_proj.weight"},
    {"blk.{}.ffn_down_shexp.weight", "model.layers.{}.mlp.shared_experts.down_proj.weight"},
};

constexpr HfKey kSizes[] = {
    {"vocab_size", "vocab_size", Kind::kInt, true},
    {"max_position_embeddings", "context_length", Kind::kInt, true},
    {"hidden_size", "embedding_length", Kind::kInt, true},
    {"num_hidden_layers", "block_count", Kind::kInt, true},
    {"intermediate_size", "feed_forward_length", Kind::kInt, true},
    {"num_attention_heads", "attention.head_count", Kind::kInt, true},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", Kind::kFloat, true},
    {"q_lora_rank", "attention.q_lora_rank"},
    {"kv_lora_rank", "attention.kv_lora_rank", Kind::kInt, true},
    {"v_head_dim", "attention.value_length_mla", Kind::kInt, true},
    {"moe_intermediate_size", "expert_feed_forward_length", Kind::kInt, true},
    {"n_routed_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"n_shared_experts", "expert_shared_count"},
    {"first_k_dense_replace", "leading_dense_block_count"},
    {"routed_scaling_factor", "expert_weights_scale", Kind::kFloat},
};

// V2 has groups only with one of its routing methods; V3 always.
Status routing_to_gguf(const HfConfig& config, HfTranslation& out) {
  TERCET_ASSIGN(const std::string type, config.get_string_or("model_type", ""));
  const bool v3 = type == "deepseek_v3";
  TERCET_ASSIGN(const std::string scoring, config.get_string_or("scoring_func", v3 ? "sigmoid" : "softmax"));
  if (scoring != "sigmoid" && scoring != "softmax")
    return config.error(ErrorCode::kUnsupported, "scoring_func",
                        fmt::format("is {}; known are softmax and sigmoid", format::quote(scoring)));
  TERCET_ASSIGN(const std::string method, config.get_string_or("topk_method", v3 ? "noaux_tc" : "greedy"));
  if (method != "greedy" && method != "group_limited_greedy" && method != "noaux_tc")
    return config.error(
        ErrorCode::kUnsupported, "topk_method",
        fmt::format("is {}; known are greedy, group_limited_greedy and noaux_tc", format::quote(method)));
  TERCET_ASSIGN(const bool normalized, config.get_bool_or("norm_topk_prob", v3));
  out.metadata.set(out.key("expert_gating_func"), scoring == "sigmoid" ? kSigmoid : kSoftmax);
  // V2's weights are never divided by their sum.
  out.metadata.set(out.key("expert_weights_norm"), v3 && normalized);
  if (method == "greedy") return {};
  constexpr HfKey kGroups[] = {{"n_group", "expert_group_count", Kind::kInt, true},
                               {"topk_group", "expert_group_used_count", Kind::kInt, true}};
  return copy_to_gguf(config, kGroups, out);
}

// YaRN's magnitude multiplies the scores; llama.cpp keeps a tenth of its weight.
Status score_scale_to_gguf(const HfConfig& config, HfTranslation& out) {
  const char* key = config.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  if (!config.has(key)) return {};
  TERCET_ASSIGN(const HfConfig scaling, config.get_object(key));
  TERCET_ASSIGN(const double all, scaling.get_float_or("mscale_all_dim", 0));
  if (all != 0) out.metadata.set(out.key("rope.scaling.yarn_log_multiplier"), static_cast<float>(0.1 * all));
  return {};
}

}  // namespace

std::span<const HfTensorRule> deepseek_rules() {
  static const auto rules =
      join_rules({kHfEmbedding, kHfPreNorms, kLatentAttention, kHfMlp, kHfExperts, kMoreExperts});
  return rules;
}

Status deepseek_to_gguf(const HfConfig& config, HfTranslation& out) {
  TERCET_TRY(copy_to_gguf(config, kSizes, out));
  TERCET_ASSIGN(const int64_t frequency, config.get_int_or("moe_layer_freq", 1));
  if (frequency != 1)
    return config.error(ErrorCode::kUnsupported, "moe_layer_freq",
                        fmt::format("is {}, expected 1", frequency));
  TERCET_ASSIGN(const int64_t nope, config.get_int("qk_nope_head_dim"));
  TERCET_ASSIGN(const int64_t rope, config.get_int("qk_rope_head_dim"));
  TERCET_ASSIGN(const int64_t latent, config.get_int("kv_lora_rank"));
  constexpr int64_t kMost = 1 << 20;
  if (nope < 1 || rope < 2 || latent < 1 || std::max({nope, rope, latent}) > kMost)
    return config.error(
        ErrorCode::kInvalidArgument, "qk_nope_head_dim",
        fmt::format("{} with {} rotated and a latent of {} cannot be right", nope, rope, latent));
  Metadata& metadata = out.metadata;
  // All heads read the latent and the rotated key as one KV head.
  metadata.set(out.key("attention.head_count_kv"), uint32_t{1});
  metadata.set(out.key("attention.key_length"), static_cast<uint32_t>(latent + rope));
  metadata.set(out.key("attention.value_length"), static_cast<uint32_t>(latent));
  metadata.set(out.key("attention.key_length_mla"), static_cast<uint32_t>(nope + rope));
  TERCET_TRY(routing_to_gguf(config, out));
  TERCET_TRY(score_scale_to_gguf(config, out));
  return rope_to_gguf(config, rope, out);
}

Status deepseek_to_config(const Metadata& metadata, Metadata& config) {
  TERCET_TRY(copy_to_config(metadata, kSizes, config));
  config.set("hidden_act", "silu");
  TERCET_ASSIGN(const uint64_t heads, metadata.get_uint("deepseek2.attention.head_count"));
  TERCET_ASSIGN(const uint64_t key, metadata.get_uint("deepseek2.attention.key_length_mla"));
  TERCET_ASSIGN(const uint64_t rope, metadata.get_uint("deepseek2.rope.dimension_count"));
  config.set("num_key_value_heads", heads);
  config.set("qk_nope_head_dim", key - std::min(key, rope));
  config.set("qk_rope_head_dim", rope);
  const bool v3 = is_deepseek_v3_gguf(metadata);
  TERCET_ASSIGN(const bool normalized, metadata.get_bool_or("deepseek2.expert_weights_norm", false));
  TERCET_ASSIGN(const uint64_t groups, metadata.get_uint_or("deepseek2.expert_group_count", 1));
  TERCET_ASSIGN(const uint64_t used, metadata.get_uint_or("deepseek2.expert_group_used_count", 1));
  config.set("norm_topk_prob", normalized);
  config.set("n_group", groups);
  config.set("topk_group", used);
  config.set("scoring_func", v3 ? "sigmoid" : "softmax");
  config.set("topk_method", v3 ? "noaux_tc" : groups > 1 ? "group_limited_greedy" : "greedy");
  config.set("moe_layer_freq", uint32_t{1});
  return rope_to_config(metadata, config);
}

bool is_deepseek_v3_gguf(const Metadata& metadata) {
  const auto gating = metadata.get_uint_or("deepseek2.expert_gating_func", kSoftmax);
  return gating.ok() && *gating == kSigmoid;
}

}  // namespace tercet::model
