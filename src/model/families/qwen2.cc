// Qwen2 and Qwen2.5 (Qwen team 2024): Llama with biases on q, k and v.
#include "model/families/family.h"

namespace tercet::model {

Result<DecoderSpec> qwen2_spec(const ModelSource& source) {
  TERCET_ASSIGN(DecoderSpec spec, common_spec(source));
  spec.needs_qkv_bias = true;
  TERCET_TRY(read_windows(source, 0, spec));
  return spec;
}

}  // namespace tercet::model
