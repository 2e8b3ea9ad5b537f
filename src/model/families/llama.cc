// Llama 2 and 3, TinyLlama, SmolLM2, Mistral, Mixtral and the many models that call themselves "llama"
// (Touvron et al. 2023; Jiang et al. 2023, 2024).
#include "model/families/family.h"

namespace tercet::model {

Result<DecoderSpec> llama_spec(const ModelSource& source) {
  TERCET_ASSIGN(DecoderSpec spec, common_spec(source));
  spec.file_interleaves_rotary_pairs = true;
  TERCET_TRY(read_windows(source, 0, spec));
  backend::RouterSpec router;
  router.normalize = true;
  TERCET_TRY(read_mixture(source, router, spec));
  return spec;
}

}  // namespace tercet::model
