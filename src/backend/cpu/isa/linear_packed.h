// Linear layers over packed integer weights, for any instruction set with byte dot products. Lanes are output
// rows, so vectorising reorders no float addition; the integer sums are exact in any order.
//
// `Ops` (int_ops_*.h) is the instruction set: registers I of kRows groups of four bytes, F of kRows float32.
// One pass over a span handles up to kMaxTile activation rows. With few rows the codes are unpacked from the
// planes in registers; with many, a span is unpacked once into bytes and used by all of them.
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/cpu/kernels.h"
#include "base/check.h"

namespace tercet::backend {

// The rows of a tile at one span: row m's codes, scales and sums of 16.
template <int M>
struct TileRows {
  const int8_t* q[M];
  const float* d[M];
  const int16_t* sums[M];
};

template <class Ops, quant::PackedLayout L>
struct PackedLinear {
  using I = typename Ops::I;
  using F = typename Ops::F;
  static constexpr int kHalves = quant::kPanelRows / Ops::kRows;
  static constexpr int kMaxTile = 4;
  static constexpr bool kSigned = L.bits == 8;
  // Products of a code (at most 2^bits - 1) and an int8 that a 16-bit lane can add up, two at a time.
  static constexpr int kSumsPer16Bits = L.bits <= 4 ? 8 : L.bits == 5 ? 4 : L.bits == 6 ? 2 : 1;

  // Codes of group g of a chunk, from the planes.
  struct Planes {
    static constexpr bool kStreams = true;  // from memory: worth prefetching
    const std::byte* base;
    I group(int g) const {
      if constexpr (L.bits == 8) return Ops::load(base + g * 64);
      I code = Ops::zero();
      const std::byte* plane = base;
      if constexpr (L.bits >= 4) {
        const I both = Ops::load(plane + g % 4 * 64);
        code = Ops::template and_bytes<0x0F>(g < 4 ? both : Ops::shift_right(both, 4));
        plane += 256;
      }
      if constexpr (L.bits == 2 || L.bits == 3 || L.bits == 6) {
        const I two = Ops::template and_bytes<3>(Ops::shift_right(Ops::load(plane + g / 4 * 64), g % 4 * 2));
        code = L.bits == 6 ? Ops::or_bits(code, Ops::shift_left(two, 4)) : two;
        plane += 128;
      }
      if constexpr (L.bits == 3 || L.bits == 5) {
        const I one = Ops::template and_bytes<1>(Ops::shift_right(Ops::load(plane), g));
        code = Ops::or_bits(code, Ops::shift_left(one, L.bits - 1));
      }
      return code;
    }
  };

  // Codes that unpack_span wrote as bytes.
  struct Bytes {
    static constexpr bool kStreams = false;
    const std::byte* base;
    I group(int g) const { return Ops::load(base + g * 64); }
  };

  // Asks for the weights that follow `bytes` bytes at p: the near ones into the first, the far ones into the
  // second cache.
  static void prefetch_beyond(const std::byte* p, int bytes) {
    constexpr int kNear = 576, kFar = 4608;
    for (int i = 0; i < bytes; i += 64) {
      Ops::prefetch_near(p + i + kNear);
      Ops::prefetch_far(p + i + kFar);
    }
  }

  // acc[m] += factor * dot of groups [g0, g1) with row m, where `factor` holds a 16-bit value twice in each
  // lane.
  template <int M, class Codes>
  static void add_groups(const Codes& codes, int g0, int g1, const int8_t* const* q, I factor, I* acc) {
    if constexpr (Ops::kVnni) {
      I dot[M];
      for (int m = 0; m < M; ++m) dot[m] = Ops::zero();
#pragma GCC unroll 8
      for (int g = g0; g < g1; ++g) {
        const I code = kSigned ? Ops::flip_sign_bit(codes.group(g)) : codes.group(g);
        for (int m = 0; m < M; ++m) dot[m] = Ops::dot4(dot[m], code, Ops::broadcast4(q[m] + g * 4));
      }
      for (int m = 0; m < M; ++m)
        acc[m] = Ops::add32(acc[m], Ops::multiply32(dot[m], Ops::sign_extend_low(factor)));
      return;
    }
#pragma GCC unroll 8
    for (int begin = g0; begin < g1; begin += kSumsPer16Bits) {
      const int end = std::min(begin + kSumsPer16Bits, g1);
      I sum16[M];
#pragma GCC unroll 8
      for (int g = begin; g < end; ++g) {
        const I code = codes.group(g);
        for (int m = 0; m < M; ++m) {
          const I a = Ops::broadcast4(q[m] + g * 4);
          const I products = kSigned ? Ops::products_signed(code, a) : Ops::products(code, a);
          sum16[m] = g == begin ? products : Ops::add16(sum16[m], products);
        }
      }
      for (int m = 0; m < M; ++m) acc[m] = Ops::add32(acc[m], Ops::madd16(sum16[m], factor));
    }
  }

  // Sums over a span of scale * dot, and of what depends on the activations' sums alone: scaled minimums, or
  // with kPair the scales (for the zero).
  template <int M, class Codes>
  static void block_256(const Codes& codes, int codes_per_chunk, const std::byte* sub, int half,
                        const TileRows<M>& x, I* isum, I* extra) {
    for (int m = 0; m < M; ++m) isum[m] = extra[m] = Ops::zero();
    for (int c = 0; c < quant::kSpan / quant::kChunk; ++c) {
      const Codes chunk{codes.base + c * codes_per_chunk};
      if (Codes::kStreams && half == 0) prefetch_beyond(chunk.base, codes_per_chunk);
      const int8_t* q[M];
      for (int m = 0; m < M; ++m) q[m] = x.q[m] + c * quant::kChunk;
      const std::byte* pair = sub + c * 32 + half * Ops::kRows * 2;
      const I bytes = L.sub == quant::SubScale::kPair ? Ops::widen_i8(pair) : Ops::widen_u8(pair);
      const I scales = L.sub == quant::SubScale::kNibbles ? Ops::template and_words<0x0F>(bytes) : bytes;
      if constexpr (L.sub == quant::SubScale::kScaleMin) {
        add_groups<M>(chunk, 0, 8, q, Ops::dup_even(scales), isum);
      } else {
        add_groups<M>(chunk, 0, 4, q, Ops::dup_even(scales), isum);
        add_groups<M>(chunk, 4, 8, q, Ops::dup_odd(scales), isum);
      }
      const I weights = L.sub == quant::SubScale::kPair      ? scales
                        : L.sub == quant::SubScale::kNibbles ? Ops::shift_right(bytes, 4)
                                                             : Ops::dup_odd(bytes);
      for (int m = 0; m < M; ++m)
        extra[m] = Ops::add32(extra[m], Ops::madd16(weights, Ops::broadcast4(x.sums[m] + c * 2)));
    }
    if constexpr (L.zero != 0) {
      for (int m = 0; m < M; ++m) isum[m] = Ops::sub32(isum[m], Ops::multiply_power_of_two(extra[m], L.zero));
    }
  }

  template <int M, class Codes>
  static void span_256(const Codes& codes, int codes_per_chunk, const std::byte* span,
                       const quant::SpanOffsets& at, int half, const TileRows<M>& x, F* acc) {
    I isum[M], extra[M];
    block_256<M>(codes, codes_per_chunk, span + at.sub, half, x, isum, extra);
    const F dw = Ops::load_f16(span + at.d + half * Ops::kRows * 2);
    for (int m = 0; m < M; ++m) {
      F t = Ops::to_float(isum[m]);
      if constexpr (L.has_min) {
        const F mw = Ops::load_f16(span + at.m + half * Ops::kRows * 2);
        t = Ops::fmsub(dw, t, Ops::mul(mw, Ops::to_float(extra[m])));
      } else {
        t = Ops::mul(dw, t);
      }
      acc[m] = Ops::fma(Ops::all(x.d[m][0]), t, acc[m]);
    }
  }

  template <int M, class Codes>
  static void span_32(const Codes& codes, int codes_per_chunk, const std::byte* span,
                      const quant::SpanOffsets& at, int chunks, int half, const TileRows<M>& x, F* acc) {
    // What the codes are above their value: the zero, and 128 where the sign bit is flipped for dot4.
    constexpr int kBias = L.zero + (kSigned && Ops::kVnni ? 128 : 0);
    for (int c = 0; c < chunks; ++c) {
      const Codes chunk{codes.base + c * codes_per_chunk};
      if (Codes::kStreams && half == 0) prefetch_beyond(chunk.base, codes_per_chunk);
      const int8_t* q[M];
      I isum[M];
      int sums[M];
      for (int m = 0; m < M; ++m) {
        q[m] = x.q[m] + c * quant::kChunk;
        sums[m] = x.sums[m][c * 2] + x.sums[m][c * 2 + 1];
        isum[m] = kBias == 0 ? Ops::zero() : Ops::all32(-kBias * sums[m]);
      }
      add_groups<M>(chunk, 0, 8, q, Ops::all16(1), isum);
      const F dw = Ops::load_f16(span + at.d + (c * quant::kPanelRows + half * Ops::kRows) * 2);
      for (int m = 0; m < M; ++m) {
        F t = Ops::to_float(isum[m]);
        if constexpr (L.has_min) {
          const F mw = Ops::load_f16(span + at.m + (c * quant::kPanelRows + half * Ops::kRows) * 2);
          t = Ops::fmsub(dw, t, Ops::mul(mw, Ops::all(static_cast<float>(sums[m]))));
        } else {
          t = Ops::mul(dw, t);
        }
        acc[m] = Ops::fma(Ops::all(x.d[m][c]), t, acc[m]);
      }
    }
  }

  // acc: [M][16], continued from the spans before.
  template <int M, class Codes>
  static void span(const Codes& codes, int codes_per_chunk, const std::byte* span, int chunks,
                   const TileRows<M>& x, float* acc) {
    const quant::SpanOffsets at = quant::span_offsets(L, chunks);
    if (Codes::kStreams) prefetch_beyond(span + at.sub, at.size - at.sub);
    for (int half = 0; half < kHalves; ++half) {
      const Codes mine{codes.base + half * Ops::kRows * 4};
      F sums[M];
      for (int m = 0; m < M; ++m) sums[m] = Ops::load_f32(acc + m * 16 + half * Ops::kRows);
      if constexpr (L.block == quant::kSpan) {
        span_256<M>(mine, codes_per_chunk, span, at, half, x, sums);
      } else {
        span_32<M>(mine, codes_per_chunk, span, at, chunks, half, x, sums);
      }
      for (int m = 0; m < M; ++m) Ops::store_f32(acc + m * 16 + half * Ops::kRows, sums[m]);
    }
  }

  static void unpack_span(const std::byte* span, int chunks, std::byte* bytes) {
    for (int c = 0; c < chunks; ++c) {
      for (int half = 0; half < kHalves; ++half) {
        const Planes planes{span + c * L.bits * 64 + half * Ops::kRows * 4};
#pragma GCC unroll 8
        for (int g = 0; g < 8; ++g)
          Ops::store(bytes + (c * 8 + g) * 64 + half * Ops::kRows * 4, planes.group(g));
      }
    }
  }

  template <int M, class Codes>
  static void tile(const Codes& codes, int codes_per_chunk, const std::byte* weights, int chunks,
                   int64_t span_index, const QuantizedRows& x, int64_t row, float* acc) {
    constexpr int kBlocksPerSpan = quant::kSpan / L.block;
    TileRows<M> rows;
    for (int m = 0; m < M; ++m) {
      rows.q[m] = x.q_row(row + m) + span_index * quant::kSpan;
      rows.d[m] = x.d_row(row + m) + span_index * kBlocksPerSpan;
      rows.sums[m] = x.sums_row(row + m) + span_index * (quant::kSpan / 16);
    }
    span<M>(codes, codes_per_chunk, weights, chunks, rows, acc);
  }

  template <class Codes>
  static void rows_of_span(const Codes& codes, int codes_per_chunk, const std::byte* weights, int chunks,
                           int64_t span_index, const QuantizedRows& x, int64_t begin, int64_t count,
                           float* acc) {
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
      tile<4>(codes, codes_per_chunk, weights, chunks, span_index, x, begin + i, acc + i * 16);
    const auto rest = [&](auto m) {
      tile<m()>(codes, codes_per_chunk, weights, chunks, span_index, x, begin + i, acc + i * 16);
    };
    if (count - i == 3) rest(std::integral_constant<int, 3>{});
    if (count - i == 2) rest(std::integral_constant<int, 2>{});
    if (count - i == 1) rest(std::integral_constant<int, 1>{});
  }

  static constexpr int64_t kMaxRowBlock = 128;
  // Activation codes that stay in the second-level cache while panels pass by.
  static constexpr int64_t kCachedCodes = 192 << 10;

  static void panel_rows(const LinearTask& task, const QuantizedRows& x, int64_t panel, int64_t begin,
                         int64_t count) {
    alignas(64) float acc[kMaxRowBlock * 16];
    alignas(64) std::byte bytes[quant::kSpan * quant::kPanelRows];
    std::memset(acc, 0, static_cast<size_t>(count) * 16 * sizeof(float));
    const std::byte* weights = task.panels + panel * task.panel_stride;
    for (int64_t s = 0; s < quant::num_spans(task.inputs); ++s) {
      const int chunks = quant::span_chunks(task.inputs, s);
      if (count <= kMaxTile) {
        rows_of_span(Planes{weights}, L.bits * 64, weights, chunks, s, x, begin, count, acc);
      } else {
        unpack_span(weights, chunks, bytes);
        rows_of_span(Bytes{bytes}, 512, weights, chunks, s, x, begin, count, acc);
      }
      weights += quant::span_offsets(L, chunks).size;
    }
    store_outputs(task, panel, begin, count, acc);
  }

  static void store_outputs(const LinearTask& task, int64_t panel, int64_t begin, int64_t count,
                            const float* acc) {
    const int64_t first = panel * quant::kPanelRows;
    const int64_t lanes = std::min<int64_t>(quant::kPanelRows, task.outputs - first);
    for (int64_t row = 0; row < count; ++row) {
      float* y = task.y + (begin + row) * task.y_stride + first;
      for (int64_t lane = 0; lane < lanes; ++lane)
        y[lane] =
            task.bias == nullptr ? acc[row * 16 + lane] : acc[row * 16 + lane] + task.bias[first + lane];
    }
  }

  static void run(const LinearTask& task, const QuantizedRows& x) {
    const int64_t row_block = std::clamp<int64_t>(kCachedCodes / task.inputs / 4 * 4, 16, kMaxRowBlock);
    for (int64_t begin = task.row_begin; begin < task.row_end; begin += row_block) {
      const int64_t count = std::min(row_block, task.row_end - begin);
      for (int64_t panel = task.panel_begin; panel < task.panel_end; ++panel)
        panel_rows(task, x, panel, begin, count);
    }
  }
};

template <class Ops>
void linear_packed(const quant::PackedLayout& layout, const LinearTask& task, const QuantizedRows& x) {
  const auto run_if = [&]<quant::PackedLayout L>() {
    if (layout != L) return false;
    PackedLinear<Ops, L>::run(task, x);
    return true;
  };
  const bool found = [&]<size_t... i>(std::index_sequence<i...>) {
    return (run_if.template operator()<quant::kPackedLayouts[i]>() || ...);
  }
  (std::make_index_sequence<std::size(quant::kPackedLayouts)>{});
  TERCET_CHECK(found);
}

}  // namespace tercet::backend
