// Gemma 3 (Google 2025), text models: local layers with a sliding window and a rotary base of their own, one
// global layer in six, norms around attention and MLP, norms of q and k.
#include <cmath>

#include "model/families/family.h"

namespace tercet::model {
namespace {

constexpr int kGemma3GlobalEvery = 6;
constexpr float kLocalBase = 10000;
// The 27B model scales its queries by its width over its heads and not by the head size.
constexpr int kGemma3LayersOf27b = 62;

}  // namespace

Result<DecoderSpec> gemma3_spec(const ModelSource& source) {
  const ArchKeys keys(source);
  TERCET_ASSIGN(DecoderSpec spec, common_spec(source));
  TERCET_TRY(read_windows(source, kGemma3GlobalEvery, spec));
  TERCET_ASSIGN(const float local_base, keys.number("rope.freq_base_swa", kLocalBase));
  RopeSpec local;
  local.dims = spec.ropes[0].dims;
  local.frequencies = rope_frequencies(local.dims, local_base);
  spec.ropes.push_back(local);
  for (LayerSpec& layer : spec.layers)
    if (layer.window != 0) layer.rope = 1;
  TERCET_ASSIGN(spec.attention_soft_cap, keys.number("attn_logit_softcapping", 0.0f));
  TERCET_ASSIGN(spec.logit_soft_cap, keys.number("final_logit_softcapping", 0.0f));
  spec.activation = backend::Activation::kGeluTanh;
  spec.qk_norm = QkNorm::kPerHead;
  spec.has_post_norms = true;
  spec.embedding_scale = std::sqrt(static_cast<float>(spec.dim));
  if (spec.num_layers() == kGemma3LayersOf27b && !keys.has("attention.scale"))
    spec.attention_scale =
        1.0f / std::sqrt(static_cast<float>(spec.dim) / static_cast<float>(spec.num_heads));
  return spec;
}

}  // namespace tercet::model
