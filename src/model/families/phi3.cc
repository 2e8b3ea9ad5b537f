// Phi-3, Phi-3.5 and Phi-4 (Microsoft 2024): fused weights for q, k, v and for gate, up; longrope.
#include "model/families/family.h"

namespace tercet::model {

Result<DecoderSpec> phi3_spec(const ModelSource& source) {
  TERCET_ASSIGN(DecoderSpec spec, common_spec(source));
  TERCET_TRY(read_windows(source, 0, spec));
  return spec;
}

}  // namespace tercet::model
