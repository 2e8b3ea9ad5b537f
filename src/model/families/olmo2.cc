// OLMo 2 (Ai2 2024): norms of what attention and MLP return and none before, norms of whole rows of q and k.
// With a window it is OLMo 3: three of four layers slide, and those rotate without scaling.
#include "model/families/family.h"

namespace tercet::model {
namespace {

constexpr int kOlmo3GlobalEvery = 4;
constexpr float kDefaultBase = 10000;

}  // namespace

Result<DecoderSpec> olmo2_spec(const ModelSource& source) {
  const ArchKeys keys(source);
  TERCET_ASSIGN(DecoderSpec spec, common_spec(source));
  spec.has_pre_norms = false;
  spec.has_post_norms = true;
  spec.qk_norm = QkNorm::kWholeRow;
  TERCET_TRY(read_windows(source, kOlmo3GlobalEvery, spec));
  TERCET_ASSIGN(const float base, keys.number("rope.freq_base", kDefaultBase));
  RopeSpec local;
  local.dims = spec.ropes[0].dims;
  local.frequencies = rope_frequencies(local.dims, base);
  spec.ropes.push_back(local);
  for (LayerSpec& layer : spec.layers)
    if (layer.window != 0) layer.rope = 1;
  return spec;
}

}  // namespace tercet::model
