// Qwen2 and Qwen2.5 (Qwen team 2024): Llama with biases on q, k and v.
#include "model/families/family.h"

namespace tercet::model {

Result<DecoderSpec> qwen2_from_gguf(const format::GgufFile& file) {
  TERCET_ASSIGN(DecoderSpec spec, common_spec_from_gguf(file));
  spec.has_qkv_bias = true;
  return spec;
}

}  // namespace tercet::model
