// Qwen2, Qwen2.5, Qwen3 and Qwen3-MoE in a Hugging Face folder.
#include <fmt/format.h>

#include <algorithm>

#include "model/families/hf.h"

namespace tercet::model {
namespace {

using format::Metadata;
using Kind = HfKey::Kind;

constexpr HfKey kQwenExpertKeys[] = {
    {"num_experts_per_tok", "expert_used_count", Kind::kInt, true},
    {"moe_intermediate_size", "expert_feed_forward_length", Kind::kInt, true},
};

// A window is given in many published configs and used in few.
Status windows(const HfConfig& config, int64_t first_layer, HfTranslation& out) {
  TERCET_ASSIGN(const bool used, config.get_bool_or("use_sliding_window", false));
  if (!used) return {};
  return sliding_to_gguf(config, 0, 0, out, first_layer);
}

}  // namespace

std::span<const HfTensorRule> qwen_rules() {
  static const auto rules = join_rules({kHfEmbedding, kHfPreNorms, kHfAttention, kHfQkNorms, kHfMlp});
  return rules;
}

Status qwen_to_gguf(const HfConfig& config, HfTranslation& out) {
  TERCET_TRY(common_to_gguf(config, out));
  TERCET_TRY(rope_to_gguf(config, config_head_dim(config), out));
  TERCET_ASSIGN(const int64_t first, config.get_int_or("max_window_layers", 28));
  return windows(config, first, out);
}

Status qwen_to_config(const Metadata& metadata, Metadata& config) {
  TERCET_TRY(common_to_config(metadata, config));
  TERCET_TRY(rope_to_config(metadata, config));
  TERCET_TRY(sliding_to_config(metadata, 0, config));
  config.set("use_sliding_window", config.has("sliding_window"));
  return {};
}

std::span<const HfTensorRule> qwen3_moe_rules() {
  static const auto rules =
      join_rules({kHfEmbedding, kHfPreNorms, kHfAttention, kHfQkNorms, kHfMlp, kHfExperts});
  return rules;
}

Status qwen3_moe_to_gguf(const HfConfig& config, HfTranslation& out) {
  TERCET_TRY(common_to_gguf(config, out));
  TERCET_TRY(rope_to_gguf(config, config_head_dim(config), out));
  TERCET_TRY(windows(config, 0, out));
  const bool newer = config.has("num_local_experts");
  const HfKey count[] = {{newer ? "num_local_experts" : "num_experts", "expert_count", Kind::kInt, true}};
  TERCET_TRY(copy_to_gguf(config, count, out));
  TERCET_TRY(copy_to_gguf(config, kQwenExpertKeys, out));
  TERCET_ASSIGN(const bool normalized, config.get_bool_or("norm_topk_prob", false));
  out.metadata.set(out.key("expert_weights_norm"), normalized);
  // Layers that are dense although the model is a mixture.
  TERCET_ASSIGN(const int64_t layers, config.get_int("num_hidden_layers"));
  TERCET_ASSIGN(const int64_t step, config.get_int_or("decoder_sparse_step", 1));
  std::vector<int64_t> dense;
  if (config.has("mlp_only_layers")) {
    TERCET_ASSIGN(dense, config.get_ints("mlp_only_layers"));
  }
  if (step < 1 || layers < 1 || layers > kMaxLayers)
    return config.error(ErrorCode::kInvalidArgument, "decoder_sparse_step",
                        fmt::format("{} with {} layers cannot be right", step, layers));
  std::vector<bool> moe(static_cast<size_t>(layers));
  for (int64_t i = 0; i < layers; ++i)
    moe[static_cast<size_t>(i)] =
        std::find(dense.begin(), dense.end(), i) == dense.end() && (i + 1) % step == 0;
  if (std::find(moe.begin(), moe.end(), false) != moe.end()) out.metadata.set_bools("tercet.moe_layers", moe);
  return {};
}

Status qwen3_moe_to_config(const Metadata& metadata, Metadata& config) {
  TERCET_TRY(qwen_to_config(metadata, config));
  constexpr HfKey kCount[] = {{"num_experts", "expert_count", Kind::kInt, true}};
  TERCET_TRY(copy_to_config(metadata, kCount, config));
  TERCET_TRY(copy_to_config(metadata, kQwenExpertKeys, config));
  TERCET_ASSIGN(const bool normalized, metadata.get_bool_or("qwen3moe.expert_weights_norm", true));
  config.set("norm_topk_prob", normalized);
  std::vector<int32_t> dense;
  if (metadata.has("tercet.moe_layers")) {
    TERCET_ASSIGN(const auto moe, metadata.get_ints("tercet.moe_layers", /*allow_bools=*/true));
    for (size_t i = 0; i < moe.size(); ++i)
      if (moe[i] == 0) dense.push_back(static_cast<int32_t>(i));
  }
  config.set("mlp_only_layers", std::span<const int32_t>(dense));
  config.set("decoder_sparse_step", uint32_t{1});
  return {};
}

}  // namespace tercet::model
