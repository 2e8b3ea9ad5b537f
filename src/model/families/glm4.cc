// GLM-4-0414 (GLM team, Zhipu AI 2025): as "chatglm", with norms of what attention and MLP return.
#include "model/families/family.h"

namespace tercet::model {

Result<DecoderSpec> glm4_spec(const ModelSource& source) {
  TERCET_ASSIGN(DecoderSpec spec, chatglm_spec(source));
  spec.has_post_norms = true;
  return spec;
}

}  // namespace tercet::model
