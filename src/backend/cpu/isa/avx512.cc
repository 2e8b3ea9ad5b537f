// Everything that this file instantiates is named after TERCET_ISA, so that the linker never takes code
// compiled for one instruction set where another was meant.
#define TERCET_ISA avx512

#include "backend/cpu/isa/f32x16_avx512.h"
#include "backend/cpu/isa/int_ops_avx512.h"
#include "backend/cpu/isa/table.h"
#include "backend/cpu/isa/tables.h"

namespace tercet::backend {

const Kernels& avx512_kernels() {
  static constexpr Kernels kTable = make_kernels<avx512::F32x16, avx512::IntOps>();
  return kTable;
}

}  // namespace tercet::backend
