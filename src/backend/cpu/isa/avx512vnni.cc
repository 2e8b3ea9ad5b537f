// Everything that this file instantiates is named after TERCET_ISA, so that the linker never takes code
// compiled for one instruction set where another was meant.
#define TERCET_ISA avx512vnni

#include "backend/cpu/isa/f32x16_avx512.h"
#include "backend/cpu/isa/int_ops_avx512.h"
#include "backend/cpu/isa/table.h"
#include "backend/cpu/isa/tables.h"

namespace tercet::backend {

const Kernels& avx512vnni_kernels() {
  static constexpr Kernels kTable = make_kernels<avx512vnni::F32x16, avx512vnni::VnniOps>();
  return kTable;
}

const Kernels& avx512vnni_fast_mul_kernels() {
  static constexpr Kernels kTable =
      with_linear_packed<avx512vnni::FastMulOps>(make_kernels<avx512vnni::F32x16, avx512vnni::VnniOps>());
  return kTable;
}

}  // namespace tercet::backend
