// Qwen3's mixtures of experts (Qwen team 2025).
#include "model/families/family.h"

namespace tercet::model {

Result<DecoderSpec> qwen3moe_spec(const ModelSource& source) {
  TERCET_ASSIGN(DecoderSpec spec, qwen3_spec(source));
  backend::RouterSpec router;
  router.normalize = true;
  TERCET_TRY(read_mixture(source, router, spec));
  return spec;
}

}  // namespace tercet::model
