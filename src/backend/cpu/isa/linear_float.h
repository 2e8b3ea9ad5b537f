// Linear layers over F32, F16 and BF16 weights for any sixteen-lane vector type V. Lanes are outputs; each
// output has one accumulator that takes the inputs in ascending order, so loops are unrolled over rows and
// panels only.
#pragma once

#include <algorithm>
#include <type_traits>

#include "backend/cpu/isa/prefetch.h"
#include "backend/cpu/kernels.h"

namespace tercet::backend {

template <class V, class Ops, FloatType type>
struct FloatLinear {
  // Rows and panels whose accumulators are in registers at once.
  static constexpr int kRows = V::kManyRegisters ? 8 : 6;
  static constexpr int kPanels = V::kManyRegisters ? 2 : 1;
  static constexpr int kInputBytes = type == FloatType::kF32 ? 64 : 32;  // of a panel
  static constexpr int kTileRows[] = {1, 2, 3, 4, 6, 8};                 // of tiles, as far as kRows

  enum class Inputs { kAll, kEven, kOdd };

  template <Inputs inputs>
  static V load(const std::byte* panel, int64_t k) {
    const auto* pairs = reinterpret_cast<const uint32_t*>(panel) + k / 2 * 16;
    if constexpr (inputs == Inputs::kEven) return V::load_bf16_low(pairs);
    if constexpr (inputs == Inputs::kOdd) return V::load_bf16_high(pairs);
    if constexpr (type == FloatType::kF32) return V::load(reinterpret_cast<const float*>(panel) + k * 16);
    return V::load_f16(reinterpret_cast<const uint16_t*>(panel) + k * 16);
  }

  // `count` rows, up to M, times P panels; the last row is computed again for those that are missing.
  template <int M, int P>
  static void tile(const LinearTask& task, const float* x, int64_t x_stride, int64_t row, int count,
                   int64_t panel) {
    V acc[M][P];
    clear(acc);
    const std::byte* weights[P];
    for (int p = 0; p < P; ++p) weights[p] = task.panels + (panel + p) * task.panel_stride;
    const float* rows[M];
    for (int m = 0; m < M; ++m) rows[m] = x + (row + std::min(m, count - 1)) * x_stride;
    if constexpr (type == FloatType::kBF16) {
      add_bf16(weights, rows, task.inputs, task.prefetch, acc);
    } else {
      add_chain<Inputs::kAll>(weights, rows, 0, task.inputs, task.prefetch, acc);
    }
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p)
        if (m < count) store(task, row + m, panel + p, acc[m][p]);
  }

  template <int M, int P>
  static void clear(V (&acc)[M][P]) {
    // Loops over accumulators are unrolled, all of them: an index that varies would keep them in memory.
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) acc[m][p] = V::all(0);
  }

  // acc[m][p] += those of inputs [begin, end) of row m times weights[p].
  template <Inputs inputs, int M, int P>
  static void add_chain(const std::byte* const* weights, const float* const* rows, int64_t begin, int64_t end,
                        Prefetch prefetch, V (&acc)[M][P]) {
#pragma GCC unroll 1
    for (int64_t k = begin + (inputs == Inputs::kOdd); k < end; k += inputs == Inputs::kAll ? 1 : 2) {
      V w[P];
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) {
        w[p] = load<inputs>(weights[p], k);
        if (k * kInputBytes % 64 == 0) prefetch_beyond<Ops>(weights[p] + k * kInputBytes, prefetch);
      }
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) {
        const V value = V::all(rows[m][k]);
#pragma GCC unroll 4
        for (int p = 0; p < P; ++p) acc[m][p] = fma(value, w[p], acc[m][p]);
      }
    }
  }

  // As tdpbf16ps adds: per 32 inputs the even and the odd ones in a chain each, then their sum to the
  // accumulator. One chain behind the other, as registers hold one.
  template <int M, int P>
  static void add_bf16(const std::byte* const* weights, const float* const* rows, int64_t inputs,
                       Prefetch prefetch, V (&acc)[M][P]) {
    for (int64_t begin = 0; begin < inputs; begin += 32) {
      V even[M][P], odd[M][P];
      clear(even);
      add_chain<Inputs::kEven>(weights, rows, begin, begin + 32, prefetch, even);
      clear(odd);
      add_chain<Inputs::kOdd>(weights, rows, begin, begin + 32, prefetch, odd);
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
        for (int p = 0; p < P; ++p) acc[m][p] = acc[m][p] + (even[m][p] + odd[m][p]);
    }
  }

  static void store(const LinearTask& task, int64_t row, int64_t panel, V acc) {
    const int64_t first = panel * quant::kPanelRows;
    const int lanes = static_cast<int>(std::min<int64_t>(quant::kPanelRows, task.outputs - first));
    if (task.bias != nullptr) acc = acc + V::load_partial(task.bias + first, lanes);
    acc.store_partial(task.y + row * task.y_stride + first, lanes);
  }

  template <int M>
  static void panels(const LinearTask& task, const float* x, int64_t x_stride, int64_t row, int count) {
    // More panels at once where few rows leave the accumulators idle.
    constexpr int P = M == 1 ? 4 : M == 2 ? 2 : kPanels;
    int64_t panel = task.panel_begin;
    for (; panel + P <= task.panel_end; panel += P) tile<M, P>(task, x, x_stride, row, count, panel);
    for (; panel < task.panel_end; ++panel) tile<M, 1>(task, x, x_stride, row, count, panel);
  }

  // In the smallest tile that holds them.
  template <int i = 0>
  static void some_rows(const LinearTask& task, const float* x, int64_t x_stride, int64_t row, int count) {
    if constexpr (kTileRows[i] < kRows)
      if (count > kTileRows[i]) return some_rows<i + 1>(task, x, x_stride, row, count);
    panels<kTileRows[i]>(task, x, x_stride, row, count);
  }

  static void run(const LinearTask& task, const float* x, int64_t x_stride) {
    for (int64_t row = 0; row < task.rows; row += kRows)
      some_rows(task, x, x_stride, row, static_cast<int>(std::min<int64_t>(kRows, task.rows - row)));
  }
};

template <class V, class Ops>
void linear_float(FloatType type, const LinearTask& task, const float* x, int64_t x_stride) {
  switch (type) {
    case FloatType::kF32: return FloatLinear<V, Ops, FloatType::kF32>::run(task, x, x_stride);
    case FloatType::kF16: return FloatLinear<V, Ops, FloatType::kF16>::run(task, x, x_stride);
    case FloatType::kBF16: return FloatLinear<V, Ops, FloatType::kBF16>::run(task, x, x_stride);
  }
}

}  // namespace tercet::backend
