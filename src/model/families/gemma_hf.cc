// Gemma 2 and the text models of Gemma 3 in a Hugging Face folder: norms that multiply by 1 + w, four a
// layer; windows on most layers.
#include <fmt/format.h>

#include <cmath>

#include "model/families/hf.h"

namespace tercet::model {
namespace {

using format::Metadata;
using Kind = HfKey::Kind;

constexpr const char* kActivation = "gelu_pytorch_tanh";
constexpr int64_t kGemma2Pattern = 2, kGemma3Pattern = 6;

constexpr HfTensorRule kEmbedding[] = {
    {"token_embd.weight", "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight", HfLayout::kPlusOne},
};
constexpr HfTensorRule kGemmaNorms[] = {
    {"blk.{}.attn_norm.weight", "model.layers.{}.input_layernorm.weight", HfLayout::kPlusOne},
    {"blk.{}.attn_q_norm.weight", "model.layers.{}.self_attn.q_norm.weight", HfLayout::kPlusOne},
    {"blk.{}.attn_k_norm.weight", "model.layers.{}.self_attn.k_norm.weight", HfLayout::kPlusOne},
    {"blk.{}.post_attention_norm.weight", "model.layers.{}.post_attention_layernorm.weight",
     HfLayout::kPlusOne},
    {"blk.{}.ffn_norm.weight", "model.layers.{}.pre_feedforward_layernorm.weight", HfLayout::kPlusOne},
    {"blk.{}.post_ffw_norm.weight", "model.layers.{}.post_feedforward_layernorm.weight", HfLayout::kPlusOne},
};

constexpr HfKey kSoftCaps[] = {
    {"attn_logit_softcapping", "attn_logit_softcapping", Kind::kFloat},
    {"final_logit_softcapping", "final_logit_softcapping", Kind::kFloat},
};

Status gemma_to_gguf(const HfConfig& config, HfTranslation& out) {
  TERCET_TRY(common_to_gguf(config, out, kActivation));
  TERCET_TRY(copy_to_gguf(config, kSoftCaps, out));
  TERCET_ASSIGN(const bool both_ways, config.get_bool_or("use_bidirectional_attention", false));
  if (both_ways)
    return config.error(ErrorCode::kUnsupported, "use_bidirectional_attention",
                        "is true: this is an embedding model and not a language model");
  TERCET_ASSIGN(const double scalar,
                config.get_float_or("query_pre_attn_scalar", static_cast<double>(config_head_dim(config))));
  if (!(scalar > 0))
    return config.error(ErrorCode::kInvalidArgument, "query_pre_attn_scalar",
                        fmt::format("is {}; it must be positive", scalar));
  out.metadata.set(out.key("attention.scale"), static_cast<float>(1 / std::sqrt(scalar)));
  return rope_to_gguf(config, config_head_dim(config), out);
}

Status gemma_to_config(const Metadata& metadata, Metadata& config) {
  TERCET_TRY(common_to_config(metadata, config, kActivation));
  config.set("hidden_activation", kActivation);
  TERCET_TRY(copy_to_config(metadata, kSoftCaps, config));
  TERCET_ASSIGN(const std::string scale_key, architecture_key(metadata, "attention.scale"));
  TERCET_ASSIGN(const std::string head_key, architecture_key(metadata, "attention.key_length"));
  TERCET_ASSIGN(const uint64_t head_dim, metadata.get_uint(head_key));
  TERCET_ASSIGN(const double scale,
                metadata.get_float_or(scale_key, 1 / std::sqrt(static_cast<double>(head_dim))));
  // A whole number in every published model; the file keeps its inverse root in single precision.
  config.set("query_pre_attn_scalar", static_cast<uint64_t>(std::llround(1 / (scale * scale))));
  return rope_to_config(metadata, config);
}

// The layers that attend to everything come at every n-th place.
Result<int64_t> pattern(const HfConfig& config) {
  for (const char* key : {"sliding_window_pattern", "_sliding_window_pattern"}) {
    if (!config.has(key)) continue;
    TERCET_ASSIGN(const int64_t every, config.get_int(key));
    if (every >= 1) return every;
    return config.error(ErrorCode::kInvalidArgument, key, fmt::format("{} cannot be right", every));
  }
  return kGemma3Pattern;
}

}  // namespace

std::span<const HfTensorRule> gemma_rules() {
  static const auto rules = join_rules({kEmbedding, kGemmaNorms, kHfAttention, kHfMlp});
  return rules;
}

Status gemma2_to_gguf(const HfConfig& config, HfTranslation& out) {
  TERCET_TRY(gemma_to_gguf(config, out));
  return sliding_to_gguf(config, kGemma2Pattern, kGemma2Pattern, out);
}

Status gemma2_to_config(const Metadata& metadata, Metadata& config) {
  TERCET_TRY(gemma_to_config(metadata, config));
  return sliding_to_config(metadata, kGemma2Pattern, config);
}

Status gemma3_to_gguf(const HfConfig& config, HfTranslation& out) {
  TERCET_TRY(gemma_to_gguf(config, out));
  TERCET_ASSIGN(const int64_t every, pattern(config));
  TERCET_TRY(sliding_to_gguf(config, every, kGemma3Pattern, out));
  double local = 10000;
  if (config.has("rope_parameters")) {
    TERCET_ASSIGN(local, rope_theta(config, "sliding_attention"));
  } else {
    TERCET_ASSIGN(local, config.get_float_or("rope_local_base_freq", local));
  }
  out.metadata.set(out.key("rope.freq_base_swa"), static_cast<float>(local));
  return {};
}

Status gemma3_to_config(const Metadata& metadata, Metadata& config) {
  TERCET_TRY(gemma_to_config(metadata, config));
  TERCET_TRY(sliding_to_config(metadata, kGemma3Pattern, config));
  TERCET_ASSIGN(const double local, metadata.get_float_or("gemma3.rope.freq_base_swa", 10000));
  config.set("rope_local_base_freq", static_cast<float>(local));
  return {};
}

}  // namespace tercet::model
