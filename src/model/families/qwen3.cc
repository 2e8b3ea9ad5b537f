// Qwen3 (Qwen team 2025): norms of q and k in place of Qwen2's biases.
#include "model/families/family.h"

namespace tercet::model {

Result<DecoderSpec> qwen3_spec(const ModelSource& source) {
  TERCET_ASSIGN(DecoderSpec spec, common_spec(source));
  spec.qk_norm = QkNorm::kPerHead;
  TERCET_TRY(read_windows(source, 0, spec));
  return spec;
}

}  // namespace tercet::model
