#include "backend/cpu/kernels.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/cpu/isa/tables.h"
#include "backend/cpu/scalar/scalar_kernels.h"
#include "base/check.h"

namespace tercet::backend {
namespace {

constexpr Kernels kScalarKernels = {
    .multiply_adds = scalar::multiply_adds,
    .row_tile = scalar::row_tile,
    .quantize_tile = scalar::quantize_tile,
    .linear_packed = scalar::linear_packed,
    .linear_float = scalar::linear_float,
    .round_row_bf16 = scalar::round_row_bf16,
    .rms_norm = scalar::rms_norm,
    .add = scalar::add,
    .add_scaled = scalar::add_scaled,
    .scale = scalar::scale,
    .gate = scalar::gate,
    .soft_cap = scalar::soft_cap,
    .rope = scalar::rope,
    .quantize_head = scalar::quantize_head,
    .store_k = scalar::store_k,
    .store_v = scalar::store_v,
    .attention_segment = scalar::attention_segment,
    .attention_merge = scalar::attention_merge,
    .attention_finish = scalar::attention_finish,
};

// A program has to ask Linux for the registers of AMX. They are given to the whole process or, where a
// thread's alternate signal stack is too small for them, refused.
bool amx_available() {
  unsigned a, b, c, features = 0;
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25, kAll = kBf16 | kTile | kInt8;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &features) == 0 || (features & kAll) != kAll) return false;
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // of arch_prctl(2)
  static const bool permitted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return permitted;
}

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kScalar: return "scalar";
    case Isa::kAvx2: return "avx2";
    case Isa::kAvxVnni: return "avxvnni";
    case Isa::kAvx512: return "avx512";
    case Isa::kAvx512Vnni: return "avx512vnni";
    case Isa::kAmx: return "amx";
  }
  return "?";
}

// The compiler's run-time checks cover the operating system's support too.
bool isa_available(Isa isa) {
  switch (isa) {
    case Isa::kScalar: return true;
    case Isa::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("f16c");
    case Isa::kAvxVnni: return isa_available(Isa::kAvx2) && __builtin_cpu_supports("avxvnni");
    case Isa::kAvx512:
      return isa_available(Isa::kAvx2) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl");
    case Isa::kAvx512Vnni: return isa_available(Isa::kAvx512) && __builtin_cpu_supports("avx512vnni");
    case Isa::kAmx: return isa_available(Isa::kAvx512Vnni) && amx_available();
  }
  return false;
}

Isa best_isa() {
  Isa best = Isa::kScalar;
  for (Isa isa : kAllIsas)
    if (isa_available(isa)) best = isa;
  return best;
}

const Kernels& kernels(Isa isa) {
  TERCET_CHECK(isa_available(isa));
  switch (isa) {
    case Isa::kScalar: return kScalarKernels;
    case Isa::kAvx2: return avx2_kernels();
    case Isa::kAvxVnni: return avxvnni_kernels();
    case Isa::kAvx512: return avx512_kernels();
    case Isa::kAvx512Vnni: return avx512vnni_kernels();
    case Isa::kAmx: return amx_kernels();
  }
  return kScalarKernels;
}

}  // namespace tercet::backend
