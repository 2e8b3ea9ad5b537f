// The AVX-512, AMX and AVX-VNNI kernel tables, compiled for AVX2 with emulated intrinsics; call only where
// Isa::kAvx2 is available.
#pragma once

#include "backend/cpu/kernels.h"

namespace tercet::backend {

const Kernels& emulated_avxvnni_kernels();
const Kernels& emulated_avx512_kernels();
const Kernels& emulated_avx512vnni_kernels();
const Kernels& emulated_avx512vnni_fast_mul_kernels();
const Kernels& emulated_amx_kernels();

}  // namespace tercet::backend
