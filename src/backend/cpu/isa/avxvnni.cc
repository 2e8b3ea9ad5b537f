// Everything that this file instantiates is named after TERCET_ISA, so that the linker never takes code
// compiled for one instruction set where another was meant.
#define TERCET_ISA avxvnni

#include "backend/cpu/isa/f32x16_avx2.h"
#include "backend/cpu/isa/int_ops_avx2.h"
#include "backend/cpu/isa/table.h"
#include "backend/cpu/isa/tables.h"

namespace tercet::backend {

const Kernels& avxvnni_kernels() {
  static constexpr Kernels kTable = make_kernels<avxvnni::F32x16, avxvnni::VnniOps>();
  return kTable;
}

}  // namespace tercet::backend
