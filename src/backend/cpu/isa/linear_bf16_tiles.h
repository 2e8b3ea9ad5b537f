// BF16 weights on a matrix unit, whose order of additions is the definition. A panel is a column of B tiles
// as it lies in memory.
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/cpu/isa/linear_float.h"

namespace tercet::backend {

template <class Tiles, class V, class Ops>
struct TiledBf16 {
  static constexpr int kRows = 16;
  static constexpr int64_t kMaxTiles = 32, kMaxPanels = 8, kTileOutputs = kRows * kRows;

  // 32 inputs of a row, as BF16.
  using RowInputs = uint16_t[32];
  // As many as stay in the first cache while panels pass by.
  static constexpr int64_t kCached = 512;

  // Columns [0, count) of `rows` rows, `row_step` from 32 inputs to the next. Rows take turns: so many
  // streams come faster than one.
  static void narrow(const float* x, int64_t x_stride, int64_t rows, int64_t count, int64_t row_step,
                     RowInputs* out) {
    for (int64_t k = 0; k < count; k += 32, out += row_step)
      for (int64_t m = 0; m < rows; ++m) Ops::store_bf16(out[m], x + m * x_stride + k);
  }

  // Up to two tiles of rows times some panels, over `count` inputs.
  struct Step {
    const RowInputs* x[2];
    int64_t row_step;
    const std::byte* panel;
    int64_t panel_stride;
    int64_t count;
    bool prefetch;
    float* acc;  // [panels][kMaxTiles][16][16]
  };

  // Asks for what follows soon into the first cache, and for what follows later into the second.
  static void prefetch(const std::byte* weights) {
    for (int i = 0; i < 1024; i += 64) {
      Ops::prefetch_near(weights + i + 576);
      Ops::prefetch_far(weights + i + 4608);
    }
  }

  // acc += x W^T
  template <int kTiles, int kPanels>
  static void multiply(const Step& step) {
    static_assert(kTiles * kPanels <= 4);
    const auto for_sums = [&](const auto& run) {
      [&]<size_t... c>(std::index_sequence<c...>) {
        (run.template operator()<static_cast<int>(c)>(step.acc +
                                                      (c % kPanels * kMaxTiles + c / kPanels) * kTileOutputs),
         ...);
      }
      (std::make_index_sequence<kTiles * kPanels>{});
    };
    const auto add_panel = [&]<int p>(const std::byte* weights) {
      if (step.prefetch) prefetch(weights);
      Tiles::template load<6 + p % 2>(weights);
      Tiles::template dot_bf16<p, 4, 6 + p % 2>();
      if constexpr (kTiles == 2) Tiles::template dot_bf16<kPanels + p, 5, 6 + p % 2>();
    };
    for_sums([]<int c>(const float* sums) { Tiles::template load<c>(sums); });
    for (int64_t i = 0; i < step.count / 32; ++i) {
      Tiles::template load<4>(step.x[0] + i * step.row_step);
      if constexpr (kTiles == 2) Tiles::template load<5>(step.x[1] + i * step.row_step);
      const std::byte* weights = step.panel + i * 1024;
      add_panel.template operator()<0>(weights);
      if constexpr (kPanels >= 2) add_panel.template operator()<1>(weights + step.panel_stride);
      if constexpr (kPanels == 4) add_panel.template operator()<2>(weights + 2 * step.panel_stride);
      if constexpr (kPanels == 4) add_panel.template operator()<3>(weights + 3 * step.panel_stride);
    }
    for_sums([]<int c>(float* sums) { Tiles::template store<c>(sums); });
  }

  // As many panels at once as there are tiles for, that is streams from memory.
  static int64_t multiply_some(const Step& step, bool two_tiles, int64_t panels) {
    if (two_tiles && panels >= 2) return multiply<2, 2>(step), 2;
    if (two_tiles) return multiply<2, 1>(step), 1;
    if (panels >= 4) return multiply<1, 4>(step), 4;
    if (panels >= 2) return multiply<1, 2>(step), 2;
    return multiply<1, 1>(step), 1;
  }

  static void run(const LinearTask& task, const float* x, int64_t x_stride) {
    const Tiles tiles(64);
    alignas(64) float acc[kMaxPanels][kMaxTiles][kTileOutputs];
    // A row of a product depends on no other row, so those that are missing in a tile need not be zero: they
    // are whatever follows in memory.
    alignas(64) RowInputs cached[kCached + kRows];
    const int64_t all_tiles = (task.rows + kRows - 1) / kRows, inputs = (task.inputs + 31) / 32 * 32;
    const int64_t row_step = std::clamp<int64_t>(task.rows, 1, kRows);
    const int64_t at_once = kCached / (all_tiles > 1 ? 2 * row_step : row_step) * 32;
    for (int64_t first = 0; first < all_tiles; first += kMaxTiles) {
      const int64_t num_tiles = std::min(kMaxTiles, all_tiles - first);
      for (int64_t panel = task.panel_begin; panel < task.panel_end; panel += kMaxPanels) {
        const int64_t num_panels = std::min(kMaxPanels, task.panel_end - panel);
        for (int64_t p = 0; p < num_panels; ++p)
          std::memset(acc[p], 0, static_cast<size_t>(num_tiles) * sizeof(acc[p][0]));
        for (int64_t begin = 0; begin < inputs; begin += at_once) {
          const int64_t count = std::min(at_once, inputs - begin);
          for (int64_t tile = 0; tile < num_tiles; tile += 2) {
            const bool two = tile + 1 < num_tiles;
            Step step{{cached, cached + kCached / 2},
                      row_step,
                      nullptr,
                      task.panel_stride,
                      count,
                      tile == 0,
                      nullptr};
            for (int i = 0; i < (two ? 2 : 1); ++i) {
              const int64_t row = (first + tile + i) * kRows;
              narrow(x + row * x_stride + begin, x_stride, std::min<int64_t>(task.rows - row, kRows), count,
                     row_step, cached + i * kCached / 2);
            }
            for (int64_t p = 0; p < num_panels;) {
              step.panel = task.panels + (panel + p) * task.panel_stride + begin * 32;
              step.acc = acc[p][tile];
              p += multiply_some(step, two, num_panels - p);
            }
          }
        }
        for (int64_t i = 0; i < num_tiles * kRows && first * kRows + i < task.rows; ++i) {
          const int64_t row = first * kRows + i;
          for (int64_t p = 0; p < num_panels; ++p) {
            // Nobody has read y: its lines come from far away.
            Ops::prefetch_near(reinterpret_cast<const std::byte*>(task.y + (row + 12) * task.y_stride +
                                                                  (panel + p) * quant::kPanelRows));
            FloatLinear<V, Ops, FloatType::kBF16>::store(task, row, panel + p,
                                                         V::load(acc[p][i / kRows] + i % kRows * kRows));
          }
        }
      }
    }
  }
};

}  // namespace tercet::backend
