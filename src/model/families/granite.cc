// Granite 3 (IBM 2024): Llama with multipliers on embeddings, residuals, scores and logits.
#include <fmt/format.h>

#include "model/families/family.h"

namespace tercet::model {

Result<DecoderSpec> granite_spec(const ModelSource& source) {
  const ArchKeys keys(source);
  TERCET_ASSIGN(DecoderSpec spec, common_spec(source));
  spec.file_interleaves_rotary_pairs = true;
  TERCET_ASSIGN(spec.embedding_scale, keys.number("embedding_scale", 1.0f));
  TERCET_ASSIGN(spec.residual_scale, keys.number("residual_scale", 1.0f));
  // The logits are divided by this key.
  TERCET_ASSIGN(const float divisor, keys.number("logit_scale", 1.0f));
  if (divisor == 0)
    return Error{ErrorCode::kInvalidArgument, "is 0 and divides the logits", keys.full("logit_scale")};
  spec.logit_scale = 1.0f / divisor;
  return spec;
}

}  // namespace tercet::model
