// Everything that this file instantiates is named after TERCET_ISA, so that the linker never takes it for the
// code of the real tables.
#define TERCET_ISA avx512_emulated

#include "backend/cpu/emulated/emulated_tables.h"

#include "backend/cpu/isa/f32x16_avx512.h"
#include "backend/cpu/isa/int_ops_avx512.h"
#include "backend/cpu/isa/table.h"

namespace tercet::backend {

const Kernels& emulated_avx512_kernels() {
  static constexpr Kernels kTable = make_kernels<avx512_emulated::F32x16, avx512_emulated::IntOps>();
  return kTable;
}

const Kernels& emulated_avx512vnni_kernels() {
  static constexpr Kernels kTable = make_kernels<avx512_emulated::F32x16, avx512_emulated::VnniOps>();
  return kTable;
}

}  // namespace tercet::backend
