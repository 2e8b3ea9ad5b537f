// Everything that this file instantiates is named after TERCET_ISA, so that the linker never takes it for the
// code of the real tables.
#define TERCET_ISA avx512_emulated

#include "backend/cpu/emulated/emulated_tables.h"

#include "backend/cpu/emulated/tiles_emulated.h"
#include "backend/cpu/isa/f32x16_avx512.h"
#include "backend/cpu/isa/int_ops_avx512.h"
#include "backend/cpu/isa/table.h"
#include "backend/cpu/isa/table_tiles.h"

namespace tercet::backend {

const Kernels& emulated_avx512_kernels() {
  static constexpr Kernels kTable = make_kernels<avx512_emulated::F32x16, avx512_emulated::IntOps>();
  return kTable;
}

const Kernels& emulated_avx512vnni_kernels() {
  static constexpr Kernels kTable = make_kernels<avx512_emulated::F32x16, avx512_emulated::VnniOps>();
  return kTable;
}

const Kernels& emulated_avx512vnni_fast_mul_kernels() {
  static constexpr Kernels kTable = with_linear_packed<avx512_emulated::FastMulOps>(
      make_kernels<avx512_emulated::F32x16, avx512_emulated::VnniOps>());
  return kTable;
}

const Kernels& emulated_amx_kernels() {
  static const Kernels kTable = TileKernels<avx512_emulated::Tiles, avx512_emulated::F32x16,
                                            avx512_emulated::VnniOps, emulated_avx512vnni_kernels>::table();
  return kTable;
}

}  // namespace tercet::backend
