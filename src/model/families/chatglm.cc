// GLM-4 (GLM team, Zhipu AI 2024), which llama.cpp calls "chatglm": half of each head rotated, in
// neighbouring pairs; biases on q, k and v; fused weights.
#include "model/families/family.h"

namespace tercet::model {

Result<DecoderSpec> chatglm_spec(const ModelSource& source) {
  TERCET_ASSIGN(DecoderSpec spec, common_spec(source));
  spec.file_interleaves_rotary_pairs = true;
  return spec;
}

}  // namespace tercet::model
