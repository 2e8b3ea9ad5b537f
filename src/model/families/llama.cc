// Llama 2, Llama 3.x, TinyLlama, SmolLM2 and the many models that call themselves "llama" (Touvron et al.
// 2023).
#include <fmt/format.h>

#include "model/families/family.h"
#include "quant/codec.h"

namespace tercet::model {

Result<DecoderSpec> llama_spec(const ModelSource& source) {
  TERCET_ASSIGN(DecoderSpec spec, common_spec(source));
  TERCET_ASSIGN(const uint64_t experts, source.metadata.get_uint_or("llama.expert_count", 0));
  if (experts != 0)
    return Error{ErrorCode::kUnsupported,
                 fmt::format("is {}: mixtures of experts are not supported yet", experts),
                 "llama.expert_count"};
  spec.file_interleaves_rotary_pairs = true;
  // Llama 3.1's scaling comes as divisors of the frequencies.
  if (const TensorInfo* factors = source.tensors.find("rope_freqs.weight")) {
    RopeSpec& rope = spec.ropes[0];
    if (factors->type != DType::kF32 || factors->shape != std::vector<int64_t>{rope.dims / 2})
      return Error{ErrorCode::kCorrupt,
                   fmt::format("rope_freqs.weight is {} of {} values, expected F32 of {}",
                               dtype_name(factors->type), factors->shape[0], rope.dims / 2),
                   source.path()};
    rope.freq_factors.resize(static_cast<size_t>(rope.dims / 2));
    TERCET_ASSIGN(const TensorData data, source.tensors.read(*factors));
    quant::dequantize_row(DType::kF32, data.bytes.data(), rope.freq_factors.data(), rope.dims / 2);
  }
  return spec;
}

}  // namespace tercet::model
