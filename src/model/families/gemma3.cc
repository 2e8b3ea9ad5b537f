// Gemma 3 (Google 2025), text models: local layers with a sliding window and a rotary base of their own, one
// global layer in six, norms around attention and MLP, norms of q and k.
#include <fmt/format.h>

#include <cmath>

#include "model/families/family.h"

namespace tercet::model {
namespace {

constexpr int kGlobalEvery = 6;
constexpr double kLocalBase = 10000;
// The 27B model scales its queries by its width over its heads and not by the head size.
constexpr int k27bLayers = 62;

}  // namespace

Result<DecoderSpec> gemma3_spec(const ModelSource& source) {
  const format::Metadata& metadata = source.metadata;
  TERCET_ASSIGN(DecoderSpec spec, common_spec(source));
  TERCET_ASSIGN(const uint64_t window, metadata.get_uint("gemma3.attention.sliding_window"));
  TERCET_ASSIGN(const uint64_t every,
                metadata.get_uint_or("gemma3.attention.sliding_window_pattern", kGlobalEvery));
  TERCET_ASSIGN(const double cap, metadata.get_float_or("gemma3.final_logit_softcapping", 0.0));
  if (window < 1 || window > INT32_MAX || every < 1 || every > INT32_MAX)
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("a sliding window of {} on all but every {}th layer cannot be right", window, every),
        source.path()};
  RopeSpec local = spec.ropes[0];
  local.position_scale = 1;
  TERCET_ASSIGN(local.base, metadata.get_float_or("gemma3.rope.freq_base_swa", kLocalBase));
  spec.ropes.push_back(local);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    if ((i + 1) % every == 0) continue;
    spec.layers[i].rope = 1;
    spec.layers[i].window = static_cast<int>(window);
  }
  assign_kv_groups(spec);
  spec.activation = backend::Activation::kGeluTanh;
  spec.has_qk_norm = true;
  spec.has_post_norms = true;
  spec.embedding_scale = std::sqrt(static_cast<float>(spec.dim));
  spec.logit_soft_cap = static_cast<float>(cap);
  if (spec.num_layers() == k27bLayers)
    spec.attention_scale =
        1.0f / std::sqrt(static_cast<float>(spec.dim) / static_cast<float>(spec.num_heads));
  return spec;
}

}  // namespace tercet::model
