// One kernel table for each instruction set; call only those that isa_available() allows.
#pragma once

#include "backend/cpu/kernels.h"

namespace tercet::backend {

const Kernels& avx2_kernels();
const Kernels& avxvnni_kernels();
const Kernels& avx512_kernels();
// Two for one instruction set: they multiply sub-scales of 32 inputs in 16 or in 32 bits. Which is faster
// depends on the processor.
const Kernels& avx512vnni_kernels();
const Kernels& avx512vnni_fast_mul_kernels();
const Kernels& amx_kernels();

}  // namespace tercet::backend
