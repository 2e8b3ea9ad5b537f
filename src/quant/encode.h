// Rounding to nearest into ggml's simple types, as ggml's reference encoders do (ggml-quants.c,
// quantize_row_*_ref): a scale from the block's largest value, each value to the nearest code. Better
// encoders weigh errors; these define what "plain" means. Stateless; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace tercet::quant {

// F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1.
bool can_quantize(DType type);

// Writes the blocks of `n` values, n a multiple of the type's block. A type that can_quantize denies is a
// programming error.
void quantize_row(DType type, const float* values, std::byte* blocks, int64_t n);

}  // namespace tercet::quant
