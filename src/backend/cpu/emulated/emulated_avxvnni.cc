// The AVX-VNNI kernels, their byte dot product computed by AVX2.
#define TERCET_ISA avxvnni_emulated

#include "backend/cpu/emulated/emulated_tables.h"
#include "backend/cpu/isa/f32x16_avx2.h"
#include "backend/cpu/isa/int_ops_avx2.h"
#include "backend/cpu/isa/table.h"

namespace tercet::backend {

const Kernels& emulated_avxvnni_kernels() {
  static constexpr Kernels kTable = make_kernels<avxvnni_emulated::F32x16, avxvnni_emulated::VnniOps>();
  return kTable;
}

}  // namespace tercet::backend
