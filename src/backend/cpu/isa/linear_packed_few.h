// Few rows: the weights stream by once, and each code that is unpacked in a register meets all rows of a
// tile. Lanes are output rows, so vectorising reorders no float addition; the integer sums are exact in any
// order.
#pragma once

#include <algorithm>

#include "backend/cpu/isa/packed_codes.h"

namespace tercet::backend {

// Products of a code and an int8 that a 16-bit lane can add up, two at a time.
template <quant::PackedShape L>
inline constexpr int kProductsIn16Bits = L.has_table || L.bits > 6 ? 1
                                         : L.bits == 6             ? 2
                                         : L.bits == 5             ? 4
                                                                   : 8;

// A tile of M rows of activations, at a span (QuantizedRows).
struct TileSpan {
  const int8_t* q;
  const float* d;
  const int32_t* sums;
};

// acc[m] += dot of groups [kBegin, kEnd) with row m.
template <class Ops, quant::PackedShape L, int M, int kBegin, int kEnd>
inline void add_dots(const std::byte* chunk, typename Ops::I table, const int8_t* q,
                     typename Ops::I* acc) requires Ops::kVnni {
#pragma GCC unroll 8
  for (int g = kBegin; g < kEnd; ++g) {
    const typename Ops::I code = PackedCodes<Ops, L>::group(chunk, table, g);
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) acc[m] = Ops::dot4(acc[m], code, Ops::broadcast4(q + (g * M + m) * 4));
  }
}

// acc[m] += factor * dot of groups [kBegin, kEnd) with row m; `factor` holds a 16-bit value twice in each
// lane.
template <class Ops, quant::PackedShape L, int M, int kBegin, int kEnd>
inline void add_scaled_dots16(const std::byte* chunk, typename Ops::I table, const int8_t* q,
                              typename Ops::I factor, typename Ops::I* acc) {
  using I = typename Ops::I;
  using Codes = PackedCodes<Ops, L>;
  constexpr int kStep = std::min(kProductsIn16Bits<L>, kEnd - kBegin);
#pragma GCC unroll 8
  for (int begin = kBegin; begin < kEnd; begin += kStep) {
    I sum16[M];
#pragma GCC unroll 8
    for (int g = begin; g < begin + kStep; ++g) {
      const I code = Codes::group(chunk, table, g);
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) {
        const I a = Ops::broadcast4(q + (g * M + m) * 4);
        const I products = Codes::kSigned ? Ops::products_signed(code, a) : Ops::products(code, a);
        sum16[m] = g == begin ? products : Ops::add16(sum16[m], products);
      }
    }
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) acc[m] = Ops::add32(acc[m], Ops::madd16(sum16[m], factor));
  }
}

template <class Ops, quant::PackedShape L>
struct FewRows {
  using I = typename Ops::I;
  using F = typename Ops::F;
  using Codes = PackedCodes<Ops, L>;
  static constexpr int kHalves = quant::kPanelRows / Ops::kRows;

  // Asks for the weights that follow `bytes` bytes at p: the near ones into the first, the far ones into the
  // second cache.
  static void prefetch_beyond(const std::byte* p, int bytes) {
    constexpr int kNear = 1024, kFar = 9216;
    for (int i = 0; i < bytes; i += 64) {
      Ops::prefetch_near(p + i + kNear);
      Ops::prefetch_far(p + i + kFar);
    }
  }

  // acc[m] += scale * dot of groups [kBegin, kEnd) with row m.
  template <int M, int kBegin, int kEnd>
  static void add_scaled_dots(const std::byte* chunk, I table, const int8_t* q, I scale, I* acc) {
    if constexpr (Ops::kVnni) {
      I dot[M];
      for (int m = 0; m < M; ++m) dot[m] = Ops::zero();
      add_dots<Ops, L, M, kBegin, kEnd>(chunk, table, q, dot);
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) acc[m] = Ops::add32(acc[m], Ops::mul32(dot[m], scale));
    } else {
      add_scaled_dots16<Ops, L, M, kBegin, kEnd>(chunk, table, q, Ops::twice(scale), acc);
    }
  }

  // Integer sums of a span of one block: isum of scaled codes, and msum of scaled minimums where there are
  // any.
  template <int M>
  static void sums_256(const std::byte* codes, const std::byte* sub, I table, int half, TileSpan x, I* isum,
                       I* msum) {
    I* corrected = L.has_min ? msum : isum;
    for (int quad = 0; quad < Codes::kPairQuads; ++quad) {
      const typename Codes::Pairs pairs = Codes::pair_quad(sub, quad);
      const int32_t* sums = x.sums + Codes::pair_sums(quad) * M;
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) {
        corrected[m] = Ops::madd_add(corrected[m], pairs.low, Ops::broadcast4(sums + m));
        corrected[m] = Ops::madd_add(corrected[m], pairs.high, Ops::broadcast4(sums + M + m));
      }
    }
    constexpr int kBytes = L.bits * 64;
    if constexpr (!Codes::kHasSub) {
      for (int word = 8; word < 12; ++word)
        for (int m = 0; m < M; ++m)
          isum[m] = Ops::madd_add(isum[m], Ops::all16(-Codes::kBias), Ops::broadcast4(x.sums + word * M + m));
#pragma GCC unroll 1
      for (int c = 0; c < 8; ++c) {
        if (half == 0) prefetch_beyond(codes + c * kBytes, kBytes);
        add_plain_dots<M>(codes + c * kBytes, table, x.q + c * 32 * M, isum);
      }
      return;
    }
    for (int quad = 0; quad < Codes::kQuads; ++quad) {
      I scales = Codes::scale_quad(sub, quad);
#pragma GCC unroll 1
      for (int i = 0; i < Codes::kChunksPerQuad; ++i) {
        const int c = quad * Codes::kChunksPerQuad + i;
        const std::byte* chunk = codes + c * kBytes;
        const int8_t* q = x.q + c * 32 * M;
        if (half == 0) prefetch_beyond(chunk, kBytes);
        if constexpr (L.sub_block() == 32) {
          add_scaled_dots<M, 0, 8>(chunk, table, q, Codes::top_scale(scales), isum);
        } else {
          add_scaled_dots<M, 0, 4>(chunk, table, q, Codes::top_scale(scales), isum);
          scales = Ops::shift_left32(scales, 8);
          add_scaled_dots<M, 4, 8>(chunk, table, q, Codes::top_scale(scales), isum);
        }
        scales = Ops::shift_left32(scales, 8);
      }
    }
  }

  template <int M>
  static void add_plain_dots(const std::byte* chunk, I table, const int8_t* q, I* isum) {
    if constexpr (Ops::kVnni) {
      add_dots<Ops, L, M, 0, 8>(chunk, table, q, isum);
    } else {
      add_scaled_dots16<Ops, L, M, 0, 8>(chunk, table, q, Ops::all16(1), isum);
    }
  }

  template <int M>
  static void span_256(const quant::PackedLayout& layout, const std::byte* span, I table, int half,
                       TileSpan x, F* acc) {
    constexpr quant::SpanOffsets at = quant::span_offsets(L, 8);
    I isum[M], msum[M];
    for (int m = 0; m < M; ++m) isum[m] = msum[m] = Ops::zero();
    const int lanes = half * Ops::kRows * 4;
    sums_256<M>(span + lanes, span + at.sub + lanes, table, half, x, isum, msum);
    if (half == 0) prefetch_beyond(span + at.sub, at.size - at.sub);
    const F d = Codes::load_d(layout, span + at.d, 0, half);
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      F t = Ops::to_float(isum[m]);
      if constexpr (L.has_min) {
        t = Ops::fmsub(d, t, Ops::mul(Codes::load_m(span + at.m, 0, half), Ops::to_float(msum[m])));
      } else {
        t = Ops::mul(d, t);
      }
      acc[m] = Ops::fma(Ops::all(x.d[m]), t, acc[m]);
    }
  }

  // Groups [kBegin, kEnd) of chunk c, which are float block `block`.
  template <int M, int kBegin, int kEnd>
  static void block_32(const quant::PackedLayout& layout, const std::byte* span, const quant::SpanOffsets& at,
                       I table, int half, int c, int block, TileSpan x, F* acc) {
    const std::byte* chunk = span + c * L.bits * 64 + half * Ops::kRows * 4;
    const int32_t* sums = x.sums + c * M;
    const int8_t* q = x.q + c * 32 * M;
    // A word of sums is a pair: of groups 0 to 3 and 4 to 7.
    const I bias = kEnd - kBegin == 8 ? Ops::all16(-Codes::kBias)
                   : kBegin == 0      ? Ops::all32(-Codes::kBias & 0xFFFF)
                                      : Ops::all32(-Codes::kBias * 65536);
    I isum[M];
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m)
      isum[m] = Codes::kBias == 0 ? Ops::zero() : Ops::madd_add(Ops::zero(), bias, Ops::broadcast4(sums + m));
    if constexpr (Ops::kVnni) {
      add_dots<Ops, L, M, kBegin, kEnd>(chunk, table, q, isum);
    } else {
      add_scaled_dots16<Ops, L, M, kBegin, kEnd>(chunk, table, q, Ops::all16(1), isum);
    }
    const F d = Codes::load_d(layout, span + at.d, block, half);
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      F t = Ops::to_float(isum[m]);
      if constexpr (L.has_min) {
        const I sum = Ops::madd_add(Ops::zero(), Ops::all16(1), Ops::broadcast4(sums + m));
        t = Ops::fmsub(d, t, Ops::mul(Codes::load_m(span + at.m, block, half), Ops::to_float(sum)));
      } else {
        t = Ops::mul(d, t);
      }
      acc[m] = Ops::fma(Ops::all(x.d[c * M + m]), t, acc[m]);
    }
  }

  template <int M>
  static void span_32(const quant::PackedLayout& layout, const std::byte* span, int chunks, I table, int half,
                      TileSpan x, F* acc) {
    const quant::SpanOffsets at = quant::span_offsets(L, chunks);
    if (half == 0) prefetch_beyond(span + at.sub, at.size - at.sub);
#pragma GCC unroll 1
    for (int c = 0; c < chunks; ++c) {
      if (half == 0) prefetch_beyond(span + c * L.bits * 64, L.bits * 64);
      if constexpr (L.block == 32) {
        block_32<M, 0, 8>(layout, span, at, table, half, c, c, x, acc);
      } else {
        block_32<M, 0, 4>(layout, span, at, table, half, c, 2 * c, x, acc);
        block_32<M, 4, 8>(layout, span, at, table, half, c, 2 * c + 1, x, acc);
      }
    }
  }

  // Outputs of one panel for one tile: acc[kHalves][M].
  template <int M>
  static void panel(const quant::PackedLayout& layout, const std::byte* span, int64_t inputs, TileSpan x,
                    F (*acc)[M]) {
    constexpr int kBlocks = quant::kSpan / L.activation_block();
    const I table = Codes::load_table(layout);
    for (int half = 0; half < kHalves; ++half)
      for (int m = 0; m < M; ++m) acc[half][m] = Ops::all(0);
    for (int64_t s = 0; s < quant::num_spans(inputs); ++s) {
      const int chunks = quant::span_chunks(inputs, s);
      for (int half = 0; half < kHalves; ++half) {
        if constexpr (L.block == quant::kSpan) {
          span_256<M>(layout, span, table, half, x, acc[half]);
        } else {
          span_32<M>(layout, span, chunks, table, half, x, acc[half]);
        }
      }
      span += quant::span_offsets(L, chunks).size;
      x.q += quant::kSpan * M;
      x.d += kBlocks * M;
      x.sums += kBlocks * sums_per_block(L.activation_block()) * M;
    }
  }
};

}  // namespace tercet::backend
