// One kernel table for each instruction set; call only those that isa_available() allows.
#pragma once

#include "backend/cpu/kernels.h"

namespace tercet::backend {

const Kernels& avx2_kernels();
const Kernels& avxvnni_kernels();
const Kernels& avx512_kernels();
const Kernels& avx512vnni_kernels();
const Kernels& amx_kernels();

}  // namespace tercet::backend
