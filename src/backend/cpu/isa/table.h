// The kernel table of an instruction set, from its vector type and integer operations.
#pragma once

#include "backend/cpu/isa/attention_kernel.h"
#include "backend/cpu/isa/linear_float.h"
#include "backend/cpu/isa/linear_packed.h"
#include "backend/cpu/isa/row_kernels.h"

namespace tercet::backend {

template <class V, class IntOps>
constexpr Kernels make_kernels() {
  return {
      .multiply_adds = multiply_adds<IntOps>,
      .row_tile = row_tile<IntOps>,
      .quantize_tile = RowKernels<V>::quantize_tile,
      .linear_packed = linear_packed<IntOps>,
      .linear_float = linear_float<V, IntOps>,
      .round_row_bf16 = scalar::round_row_bf16,
      .rms_norm = RowKernels<V>::rms_norm,
      .add = RowKernels<V>::add,
      .add_scaled = RowKernels<V>::add_scaled,
      .scale = RowKernels<V>::scale,
      .gate = RowKernels<V>::gate,
      .soft_cap = RowKernels<V>::soft_cap,
      .rope = RowKernels<V>::rope,
      .quantize_head = scalar::quantize_head,
      .store_k = scalar::store_k,
      .store_v = AttentionKernels<V, IntOps>::store_v,
      .attention_segment = AttentionKernels<V, IntOps>::segment,
      .attention_merge = AttentionKernels<V, IntOps>::merge,
      .attention_finish = AttentionKernels<V, IntOps>::finish,
  };
}

template <class IntOps>
constexpr Kernels with_linear_packed(Kernels kernels) {
  kernels.linear_packed = linear_packed<IntOps>;
  return kernels;
}

}  // namespace tercet::backend
