#include "backend/cpu/kernels.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "backend/cpu/isa/tables.h"
#include "backend/cpu/scalar/scalar_kernels.h"
#include "base/check.h"
#include "quant/packed.h"

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

// Which of two tables is faster on a layer of Q4_K that stays in the second cache.
const Kernels& faster(const Kernels& a, const Kernels& b) {
  constexpr int64_t kInputs = 1024, kOutputs = 32, kRows = 24;
  const quant::PackedLayout& layout = *quant::packed_layout(DType::kQ4_K);
  const int64_t panel_stride = quant::panel_bytes(layout, kInputs);
  const std::vector<std::byte> panels(static_cast<size_t>(quant::num_panels(kOutputs) * panel_stride));
  const RowTile tile = a.row_tile(kRows, quant::kSpan);
  constexpr size_t kPadded = kRows + 16;
  std::vector<int8_t> q(kPadded * kInputs);
  std::vector<float> d(q.size() / quant::kSpan), y(kRows * kOutputs);
  std::vector<int32_t> sums(d.size() * sums_per_block(quant::kSpan));
  const QuantizedRows x{q.data(), d.data(), sums.data(), kInputs, quant::kSpan, tile.rows, tile.run};
  LinearTask task;
  task.panels = panels.data();
  task.panel_stride = panel_stride;
  task.inputs = kInputs;
  task.outputs = kOutputs;
  task.panel_end = quant::num_panels(kOutputs);
  task.rows = kRows;
  task.y = y.data();
  task.y_stride = kOutputs;
  using Clock = std::chrono::steady_clock;
  const auto time = [&](const Kernels& kernels) {
    const Clock::time_point start = Clock::now();
    kernels.linear_packed(layout, task, x);
    return Clock::now() - start;
  };
  Clock::duration best_a = Clock::duration::max(), best_b = best_a;
  for (int i = 0; i < 30; ++i) {
    best_a = std::min(best_a, time(a));
    best_b = std::min(best_b, time(b));
  }
  return best_a <= best_b ? a : b;
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
    case Isa::kAvx512Vnni: {
      static const Kernels& kFaster = faster(avx512vnni_kernels(), avx512vnni_fast_mul_kernels());
      return kFaster;
    }
    case Isa::kAmx: return amx_kernels();
  }
  return kScalarKernels;
}

}  // namespace tercet::backend
