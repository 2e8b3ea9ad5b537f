// Linear layers over packed integer weights, for any instruction set with byte dot products: one loop for few
// rows and one for many, the same bits.
#pragma once

#include <algorithm>
#include <type_traits>
#include <utility>

#include "backend/cpu/isa/linear_packed_few.h"
#include "backend/cpu/isa/linear_packed_many.h"
#include "base/check.h"

namespace tercet::backend {

template <class Ops, quant::PackedShape L>
struct PackedLinear {
  using F = typename Ops::F;
  static constexpr int kHalves = quant::kPanelRows / Ops::kRows;
  static constexpr int kBlocks = quant::kSpan / L.activation_block();

  // y of kRows outputs of one row.
  static void store(const LinearTask& task, int64_t row, int64_t panel, int half, F acc) {
    const int64_t first = panel * quant::kPanelRows + half * Ops::kRows;
    float* y = task.y + row * task.y_stride + first;
    if (first + Ops::kRows <= task.outputs) {
      if (task.bias != nullptr) acc = Ops::add(acc, Ops::load_f32(task.bias + first));
      return Ops::store_f32(y, acc);
    }
    float lanes[Ops::kRows];
    Ops::store_f32(lanes, acc);
    for (int64_t lane = 0; lane < task.outputs - first; ++lane)
      y[lane] = task.bias == nullptr ? lanes[lane] : lanes[lane] + task.bias[first + lane];
  }

  static TileSpan first_span(const QuantizedRows& x, int64_t tile) {
    return {x.q_tile(tile), x.d_tile(tile), x.sums_tile(tile)};
  }

  template <int M>
  [[gnu::noinline]] static void few(const quant::PackedLayout& layout, const LinearTask& task,
                                    const QuantizedRows& x) {
    constexpr int P = std::min(kHalves, std::max(1, Ops::kFewAccumulators / M));
    for (int64_t panel = task.panel_begin; panel < task.panel_end; ++panel) {
      for (int64_t row = 0; row < task.rows; row += M) {
        const auto rows = static_cast<int>(std::min<int64_t>(M, task.rows - row));
        for (int half = 0; half < kHalves; half += P) {
          F acc[M][P];
          FewRows<Ops, L, P>::template panel<M>(layout, task.panels + panel * task.panel_stride, half,
                                                task.inputs, first_span(x, row / M),
                                                half == 0 ? task.prefetch : Prefetch{}, acc);
          for (int m = 0; m < rows; ++m)
            for (int p = 0; p < P; ++p) store(task, row + m, panel, half + p, acc[m][p]);
        }
      }
    }
  }

  static constexpr int kManyRows = Ops::kManyRows;
  static constexpr int kVectors = Ops::kManyVectors;
  static constexpr int kMaxTiles = 43;  // that continue their sums span by span
  // Activation codes that stay in the second cache while panels pass by.
  static constexpr int64_t kCachedCodes = 1536 << 10;

  // Asks for lines [begin, end) of a span of a strip's panels. A few at a time: many would hold up what
  // computes meanwhile.
  static void prefetch(const std::byte* span, int64_t panel_stride, int64_t begin, int64_t end) {
    for (int panel = 0; panel * kHalves < kVectors; ++panel)
      for (int64_t line = begin; line < end; ++line)
        Ops::prefetch_near(span + panel * panel_stride + line * 64);
  }

  // Tiles [tile, tile + num_tiles) times vectors [vector, vector + kVectors) of outputs; those from
  // `end_vector` on repeat the last one and are not stored.
  static void many_strip(const quant::PackedLayout& layout, const LinearTask& task, const QuantizedRows& x,
                         int64_t tile, int64_t num_tiles, int64_t vector, int64_t end_vector) {
    WideSpan<Ops> wide;
    F acc[kMaxTiles][kManyRows][kVectors];
    for (int64_t i = 0; i < num_tiles; ++i)
      for (auto& row : acc[i])
        for (F& value : row) value = Ops::all(0);
    const int64_t num_spans = quant::num_spans(task.inputs);
    int64_t offset = 0;
    for (int64_t s = 0; s < num_spans; ++s) {
      const int chunks = quant::span_chunks(task.inputs, s);
      const int64_t bytes = quant::span_offsets(L, chunks).size;
      for (int p = 0; p < kVectors; ++p) {
        const int64_t v = std::min(vector + p, end_vector - 1);
        Widen<Ops, L>::vector(layout, task.panels + v / kHalves * task.panel_stride + offset, chunks,
                              static_cast<int>(v % kHalves), p, wide);
      }
      const bool is_last = s + 1 == num_spans;
      const std::byte* next = task.panels +
                              (is_last ? vector + kVectors : vector) / kHalves * task.panel_stride +
                              (is_last ? 0 : offset + bytes);
      for (int64_t i = 0; i < num_tiles; ++i) {
        prefetch(next, task.panel_stride, bytes / 64 * i / num_tiles, bytes / 64 * (i + 1) / num_tiles);
        TileSpan at = first_span(x, tile + i);
        at.q += s * quant::kSpan * kManyRows;
        at.d += s * kBlocks * kManyRows;
        at.sums += s * kBlocks * sums_per_block(L.activation_block()) * kManyRows;
        Widen<Ops, L>::Rows::span(wide, chunks, at, acc[i]);
      }
      offset += bytes;
    }
    for (int64_t i = 0; i < num_tiles; ++i) {
      const int64_t row = (tile + i) * kManyRows;
      for (int64_t m = 0; m < std::min<int64_t>(kManyRows, task.rows - row); ++m)
        for (int64_t v = vector; v < std::min(vector + kVectors, end_vector); ++v)
          store(task, row + m, v / kHalves, static_cast<int>(v % kHalves), acc[i][m][v - vector]);
    }
  }

  static void many(const quant::PackedLayout& layout, const LinearTask& task, const QuantizedRows& x) {
    const int64_t end = (task.rows + kManyRows - 1) / kManyRows;
    const int64_t fitting = std::clamp<int64_t>(kCachedCodes / (task.inputs * kManyRows), 4, kMaxTiles);
    const int64_t blocks = (end + fitting - 1) / fitting;
    const int64_t tiles = (end + blocks - 1) / blocks;
    for (int64_t tile = 0; tile < end; tile += tiles)
      for (int64_t v = task.panel_begin * kHalves; v < task.panel_end * kHalves; v += kVectors)
        many_strip(layout, task, x, tile, std::min(tiles, end - tile), v, task.panel_end * kHalves);
  }

  static void run(const quant::PackedLayout& layout, const LinearTask& task, const QuantizedRows& x) {
    // Codes of two planes cost so much to unpack that a second tile had better not do it again.
    constexpr bool kTwoPlanes = L.bits == 3 || L.bits == 5 || L.bits == 6;
    const bool again = kTwoPlanes && x.tile == kManyRows && task.rows > kManyRows;
    if (task.rows > Ops::kFewRows || again) return many(layout, task, x);
    [&]<size_t... i>(std::index_sequence<i...>) {
      ((x.tile == Ops::kFewTiles[i] ? few<Ops::kFewTiles[i]>(layout, task, x) : void()), ...);
    }
    (std::make_index_sequence<std::size(Ops::kFewTiles)>{});
  }
};

// For few rows, as few tiles of one size as there can be.
template <class Ops>
RowTile row_tile(int64_t rows, int) {
  if (rows > Ops::kFewRows) return {Ops::kManyRows};
  constexpr int kLargest = std::end(Ops::kFewTiles)[-1];
  const int64_t tiles = (rows + kLargest - 1) / kLargest;
  for (const int tile : Ops::kFewTiles)
    if (tile * tiles >= rows) return {tile};
  return {kLargest};
}

// Dot products that depend on nothing but their own accumulators.
template <class Ops>
int64_t multiply_adds(int64_t rounds) {
  constexpr int kAccumulators = 12;
  typename Ops::I acc[kAccumulators];
#pragma GCC unroll 12
  for (int i = 0; i < kAccumulators; ++i) acc[i] = Ops::all32(i);  // equal ones would become one
  const typename Ops::I codes = Ops::all16(0x0101);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kAccumulators; ++i) {
      if constexpr (Ops::kVnni) {
        acc[i] = Ops::dot4(acc[i], codes, codes);
      } else {
        acc[i] = Ops::products(acc[i], codes);
      }
    }
  }
  std::byte sums[kAccumulators][Ops::kRows * 4];
#pragma GCC unroll 12
  for (int i = 0; i < kAccumulators; ++i) Ops::store(sums[i], acc[i]);
  for (const auto& lanes : sums) [[maybe_unused]] const volatile std::byte used = lanes[0];
  return rounds * kAccumulators * Ops::kRows * 4;
}

// Calls run<L>() for the shape L of `layout`.
template <class Run>
void with_shape(const quant::PackedLayout& layout, const Run& run) {
  const auto run_if = [&]<quant::PackedShape L>() {
    if (static_cast<const quant::PackedShape&>(layout) != L) return false;
    run.template operator()<L>();
    return true;
  };
  const bool found = [&]<size_t... i>(std::index_sequence<i...>) {
    return (run_if.template operator()<quant::kPackedShapes[i]>() || ...);
  }
  (std::make_index_sequence<std::size(quant::kPackedShapes)>{});
  TERCET_CHECK(found);
}

template <class Ops>
void linear_packed(const quant::PackedLayout& layout, const LinearTask& task, const QuantizedRows& x) {
  TERCET_CHECK(x.tile == row_tile<Ops>(task.rows, x.block).rows && x.run == 4);
  with_shape(layout, [&]<quant::PackedShape L>() {
    using Plain = typename Ops::Plain;
    constexpr bool kSame = kSixteenIn16Bits<Ops, L> == kSixteenIn16Bits<Plain, L>;
    PackedLinear<std::conditional_t<kSame, Plain, Ops>, L>::run(layout, task, x);
  });
}

}  // namespace tercet::backend
