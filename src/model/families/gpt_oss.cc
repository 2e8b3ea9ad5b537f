// gpt-oss (OpenAI 2025): attention sinks, every second layer with a sliding window, experts with biases and a
// clamped SwiGLU. Its YaRN does not round its limits, which llama.cpp has no key for.
#include "model/families/family.h"

namespace tercet::model {

Result<DecoderSpec> gpt_oss_spec(const ModelSource& source) {
  TERCET_ASSIGN(DecoderSpec spec, common_spec(source, {.yarn_truncate = false}));
  TERCET_TRY(read_windows(source, 2, spec));
  backend::RouterSpec router;
  router.scores = backend::RouterSpec::Scores::kSoftmaxOfChosen;
  TERCET_TRY(read_mixture(source, router, spec));
  spec.activation = backend::Activation::kClampedSwiGlu;
  spec.has_sinks = true;
  spec.needs_qkv_bias = true;
  return spec;
}

}  // namespace tercet::model
