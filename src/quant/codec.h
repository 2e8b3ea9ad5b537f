// Block codecs: the exact values of ggml's tensor types, row by row, in plain scalar code. They define what
// the packed layouts must reproduce. Stateless; thread-safe. Results are those of ggml's dequantize_row_* bit
// for bit, given the default floating-point environment (a worker that flushes denormals may flush products
// below 2^-126).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace tercet::quant {

// Whether dequantize_row knows the type: all but the integer types, F64, Q8_1 and Q8_K.
bool can_dequantize(DType type);

// Writes the `n` values that lie in `blocks`, n a multiple of the type's block. `blocks` needs no alignment.
// An unknown type is a programming error.
void dequantize_row(DType type, const std::byte* blocks, float* out, int64_t n);

}  // namespace tercet::quant
