// DeepSeek V2, V3 and R1 (DeepSeek-AI 2024): latent attention, experts beside shared ones, the first layers
// dense.
#include <fmt/format.h>

#include <cmath>

#include "base/math.h"
#include "model/families/family.h"

namespace tercet::model {

Result<DecoderSpec> deepseek2_spec(const ModelSource& source) {
  const ArchKeys keys(source);
  TERCET_ASSIGN(DecoderSpec spec, common_spec(source));
  MlaSpec mla;
  TERCET_ASSIGN(mla.q_lora, keys.size("attention.q_lora_rank", 0));
  TERCET_ASSIGN(mla.kv_lora, keys.size("attention.kv_lora_rank"));
  TERCET_ASSIGN(mla.rope_dim, keys.size("rope.dimension_count"));
  // Older files have these sizes under the keys without "_mla".
  TERCET_ASSIGN(const int key_length, keys.size("attention.key_length_mla", spec.head_dim));
  TERCET_ASSIGN(mla.v_dim, keys.size("attention.value_length_mla", spec.v_dim));
  mla.nope_dim = key_length - mla.rope_dim;
  if (mla.nope_dim < 1 || mla.kv_lora < 1 || mla.kv_lora > INT32_MAX - mla.rope_dim)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("keys of {} with {} rotated and a latent of {} cannot be right", key_length,
                             mla.rope_dim, mla.kv_lora),
                 source.path()};
  spec.mla = mla;
  spec.num_kv_heads = 1;
  spec.head_dim = mla.kv_lora + mla.rope_dim;
  spec.v_dim = mla.kv_lora;
  spec.file_interleaves_rotary_pairs = true;
  // YaRN's magnitude multiplies the scores, once for the query and once for the key.
  TERCET_ASSIGN(const float log_multiplier, keys.number("rope.scaling.yarn_log_multiplier", 0.0f));
  TERCET_ASSIGN(const float factor, keys.number("rope.scaling.factor", 1.0f));
  const double magnitude = 1 + log_multiplier * math::log(factor);
  spec.attention_scale =
      static_cast<float>(magnitude * magnitude / std::sqrt(static_cast<double>(key_length)));
  TERCET_TRY(read_mixture(source, {}, spec));
  return spec;
}

}  // namespace tercet::model
