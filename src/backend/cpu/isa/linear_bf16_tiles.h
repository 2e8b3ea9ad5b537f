// BF16 weights on a matrix unit, whose order of additions is the definition. A panel is a column of B tiles
// as it lies in memory.
#pragma once

#include <algorithm>
#include <cstring>

#include "backend/cpu/isa/linear_float.h"

namespace tercet::backend {

template <class Tiles, class V, class Ops>
struct TiledBf16 {
  static constexpr int kRows = 16;
  static constexpr int64_t kMaxTiles = 32, kMaxPanels = 8;
  static constexpr int64_t kInputsAtOnce =
      1024;  // of two tiles of rows, as BF16: these stay in the second cache

  using Rows = uint16_t[kInputsAtOnce / 32][kRows][32];

  // Columns [begin, begin + count) of up to sixteen rows, as tiles; missing rows are zero.
  static void narrow(const float* x, int64_t x_stride, int64_t rows, int64_t count, Rows& out) {
    for (int64_t m = 0; m < kRows; ++m) {
      for (int64_t k = 0; k < count; k += 32) {
        uint16_t* to = out[k / 32][m];
        if (m < rows) {
          Ops::store_bf16(to, x + m * x_stride + k);
        } else {
          std::memset(to, 0, 64);
        }
      }
    }
  }

  static void prefetch(const std::byte* panel) {
    for (int i = 0; i < 1024; i += 64) Ops::prefetch_near(panel + i + 4096);
  }

  // acc += x W^T for kTiles tiles of rows and kPanels panels, over `count` inputs.
  template <int kTiles, int kPanels>
  static void multiply(const Rows* x, const std::byte* panel, int64_t panel_stride, int64_t count,
                       float* (&acc)[2][2]) {
    Tiles::template load<0>(acc[0][0]);
    if constexpr (kPanels == 2) Tiles::template load<1>(acc[0][1]);
    if constexpr (kTiles == 2) Tiles::template load<2>(acc[1][0]);
    if constexpr (kTiles == 2 && kPanels == 2) Tiles::template load<3>(acc[1][1]);
    for (int64_t k = 0; k < count / 32; ++k, panel += 1024) {
      prefetch(panel);
      Tiles::template load<6>(panel);
      Tiles::template load<4>(x[0][k]);
      Tiles::template dot_bf16<0, 4, 6>();
      if constexpr (kPanels == 2) {
        prefetch(panel + panel_stride);
        Tiles::template load<7>(panel + panel_stride);
        Tiles::template dot_bf16<1, 4, 7>();
      }
      if constexpr (kTiles == 2) {
        Tiles::template load<5>(x[1][k]);
        Tiles::template dot_bf16<2, 5, 6>();
        if constexpr (kPanels == 2) Tiles::template dot_bf16<3, 5, 7>();
      }
    }
    Tiles::template store<0>(acc[0][0]);
    if constexpr (kPanels == 2) Tiles::template store<1>(acc[0][1]);
    if constexpr (kTiles == 2) Tiles::template store<2>(acc[1][0]);
    if constexpr (kTiles == 2 && kPanels == 2) Tiles::template store<3>(acc[1][1]);
  }

  static void run(const LinearTask& task, const float* x, int64_t x_stride) {
    const Tiles tiles(64);
    alignas(64) float acc[kMaxPanels][kMaxTiles][kRows * kRows];
    alignas(64) Rows rows[2];
    const int64_t all_tiles = (task.rows + kRows - 1) / kRows, inputs = (task.inputs + 31) / 32 * 32;
    for (int64_t first = 0; first < all_tiles; first += kMaxTiles) {
      const int64_t num_tiles = std::min(kMaxTiles, all_tiles - first);
      for (int64_t panel = task.panel_begin; panel < task.panel_end; panel += kMaxPanels) {
        const int64_t num_panels = std::min(kMaxPanels, task.panel_end - panel);
        for (int64_t p = 0; p < num_panels; ++p)
          std::memset(acc[p], 0, static_cast<size_t>(num_tiles) * sizeof(acc[p][0]));
        for (int64_t begin = 0; begin < inputs; begin += kInputsAtOnce) {
          const int64_t count = std::min(kInputsAtOnce, inputs - begin);
          for (int64_t tile = 0; tile < num_tiles; tile += 2) {
            const auto num = static_cast<int>(std::min<int64_t>(2, num_tiles - tile));
            for (int i = 0; i < num; ++i) {
              const int64_t row = (first + tile + i) * kRows;
              narrow(x + row * x_stride + begin, x_stride, task.rows - row, count, rows[i]);
            }
            for (int64_t p = 0; p < num_panels; p += 2) {
              const std::byte* weights = task.panels + (panel + p) * task.panel_stride + begin * 32;
              const bool two = p + 1 < num_panels;
              float* to[2][2] = {};
              for (int i = 0; i < num; ++i)
                for (int j = 0; j < (two ? 2 : 1); ++j) to[i][j] = acc[p + j][tile + i];
              const auto run = num == 2 ? (two ? multiply<2, 2> : multiply<2, 1>)
                                        : (two ? multiply<1, 2> : multiply<1, 1>);
              run(rows, weights, task.panel_stride, count, to);
            }
          }
        }
        for (int64_t i = 0; i < num_tiles * kRows && first * kRows + i < task.rows; ++i)
          for (int64_t p = 0; p < num_panels; ++p)
            FloatLinear<V, FloatType::kBF16>::store(task, first * kRows + i, panel + p,
                                                    V::load(acc[p][i / kRows] + i % kRows * kRows));
      }
    }
  }
};

}  // namespace tercet::backend
