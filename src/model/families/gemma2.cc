// Gemma 2 (Google 2024): every second layer with a sliding window, norms around attention and MLP, soft caps
// on scores and logits. GGUF holds the norms' weights with their 1 added.
#include <cmath>

#include "model/families/family.h"

namespace tercet::model {
namespace {

// The 27B model scales its queries by its width over its heads and not by the head size.
constexpr int kGemma2LayersOf27b = 46;

}  // namespace

Result<DecoderSpec> gemma2_spec(const ModelSource& source) {
  const ArchKeys keys(source);
  TERCET_ASSIGN(DecoderSpec spec, common_spec(source));
  TERCET_TRY(read_windows(source, 2, spec));
  TERCET_ASSIGN(spec.attention_soft_cap, keys.number("attn_logit_softcapping", 0.0f));
  TERCET_ASSIGN(spec.logit_soft_cap, keys.number("final_logit_softcapping", 0.0f));
  spec.activation = backend::Activation::kGeluTanh;
  spec.has_post_norms = true;
  spec.embedding_scale = std::sqrt(static_cast<float>(spec.dim));
  if (spec.num_layers() == kGemma2LayersOf27b && !keys.has("attention.scale"))
    spec.attention_scale =
        1.0f / std::sqrt(static_cast<float>(spec.dim) / static_cast<float>(spec.num_heads));
  return spec;
}

}  // namespace tercet::model
