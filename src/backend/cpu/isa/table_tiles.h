// The kernel table of a processor with a matrix unit: that of its vectors, with linear layers on tiles where
// those are faster.
#pragma once

#include "backend/cpu/isa/linear_bf16_tiles.h"
#include "backend/cpu/isa/linear_packed_tiles.h"

namespace tercet::backend {

template <class Tiles, class V, class Ops, const Kernels& (*vectors)()>
struct TileKernels {
  // With fewer rows most of a tile would be empty.
  static constexpr int64_t kMinRows = 17;

  static RowTile row_tile(int64_t rows, int block) {
    return rows < kMinRows ? vectors().row_tile(rows, block) : RowTile{16, std::min(block, 64)};
  }

  static void linear_packed(const quant::PackedLayout& layout, const LinearTask& task,
                            const QuantizedRows& x) {
    if (task.rows < kMinRows) return vectors().linear_packed(layout, task, x);
    TERCET_CHECK(x.tile == 16 && x.run == std::min(x.block, 64));
    with_shape(layout, [&]<quant::PackedShape L>() { TiledLinear<Tiles, Ops, L>::run(layout, task, x); });
  }

  static void linear_float(FloatType type, const LinearTask& task, const float* x, int64_t x_stride) {
    if (type != FloatType::kBF16) return vectors().linear_float(type, task, x, x_stride);
    TiledBf16<Tiles, V, Ops>::run(task, x, x_stride);
  }

  // One product of int8 tiles after the other.
  static int64_t multiply_adds(int64_t rounds) {
    const Tiles tiles(64);
    for (int64_t i = 0; i < rounds / 16; ++i) {
      Tiles::template dot_signed<0, 4, 6>();
      Tiles::template dot_signed<1, 4, 7>();
      Tiles::template dot_signed<2, 5, 6>();
      Tiles::template dot_signed<3, 5, 7>();
    }
    return rounds / 16 * 4 * 16 * 16 * 64;
  }

  static Kernels table() {
    Kernels table = vectors();
    table.multiply_adds = multiply_adds;
    table.row_tile = row_tile;
    table.linear_packed = linear_packed;
    table.linear_float = linear_float;
    return table;
  }
};

}  // namespace tercet::backend
