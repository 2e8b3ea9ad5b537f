// Everything that this file instantiates is named after TERCET_ISA, so that the linker never takes code
// compiled for one instruction set where another was meant.
#define TERCET_ISA amx

#include "backend/cpu/isa/f32x16_avx512.h"
#include "backend/cpu/isa/int_ops_avx512.h"
#include "backend/cpu/isa/table_tiles.h"
#include "backend/cpu/isa/tables.h"
#include "backend/cpu/isa/tiles_amx.h"

namespace tercet::backend {

const Kernels& amx_kernels() {
  static const Kernels kTable =
      TileKernels<amx::Tiles, amx::F32x16, amx::VnniOps, avx512vnni_kernels>::table();
  return kTable;
}

}  // namespace tercet::backend
