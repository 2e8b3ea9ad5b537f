// Few rows: the weights stream by once, and each code that is unpacked in a register meets all rows of a
// tile. Lanes are output rows, so vectorising reorders no float addition; the integer sums are exact in any
// order.
#pragma once

#include <algorithm>

#include "backend/cpu/isa/packed_codes.h"
#include "backend/cpu/isa/prefetch.h"

namespace tercet::backend {

// Products of a code and an int8 that a 16-bit lane can add up, two at a time: a power of two, up to 8.
template <quant::PackedShape L>
constexpr int products_in_16_bits() {
  if (L.has_table && L.zero == 0) return 1;
  const int largest_code = L.has_table ? 2 * L.zero : (1 << L.bits) - 1;
  const int products = 32767 / (2 * 127 * largest_code);
  return products >= 8 ? 8 : products >= 4 ? 4 : products >= 2 ? 2 : 1;
}

// Whether madd_add multiplies dot products of sixteen codes with their sub-scale, which have to fit 16 bits.
// Where mul32 is fast, sub-blocks of 32 are multiplied once.
template <class Ops, quant::PackedShape L>
inline constexpr bool kSixteenIn16Bits = Ops::kVnni&& products_in_16_bits<L>() == 8 &&
                                         !(Ops::kFastMul32 && L.sub_block() == 32);

// A tile of M rows of activations, at a span (QuantizedRows).
struct TileSpan {
  const int8_t* q;
  const float* d;
  const int32_t* sums;
};

// P vectors of a panel's outputs at once.
template <class Ops, quant::PackedShape L, int P>
struct FewRows {
  using I = typename Ops::I;
  using F = typename Ops::F;
  using Codes = PackedCodes<Ops, L>;
  static constexpr int kVectorBytes = Ops::kRows * 4;

  // Codes of group g of the chunk at `chunk`, for all rows of the panel.
  static void load_group(const std::byte* chunk, I table, int g, I (&codes)[P]) {
#pragma GCC unroll 2
    for (int p = 0; p < P; ++p) codes[p] = Codes::group(chunk + p * kVectorBytes, table, g);
  }

  // acc[m][p] += dot of groups [kBegin, kEnd) with row m.
  template <int M, int kBegin, int kEnd>
  static void add_dots(const std::byte* chunk, I table, const int8_t* q, I (&acc)[M][P]) {
    if constexpr (Ops::kVnni) {
#pragma GCC unroll 8
      for (int g = kBegin; g < kEnd; ++g) {
        I codes[P];
        load_group(chunk, table, g, codes);
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) {
          const I a = Ops::broadcast4(q + (g * M + m) * 4);
#pragma GCC unroll 2
          for (int p = 0; p < P; ++p) acc[m][p] = Ops::dot4(acc[m][p], codes[p], a);
        }
      }
    } else {
      add_scaled_dots16<M, kBegin, kEnd>(
          chunk, table, q, [](int) { return Ops::all16(1); }, acc);
    }
  }

  // acc[m][p] += factor(p) * dot of groups [kBegin, kEnd) with row m; a factor holds a 16-bit value twice in
  // each lane.
  template <int M, int kBegin, int kEnd, class Factor>
  static void add_scaled_dots16(const std::byte* chunk, I table, const int8_t* q, const Factor& factor,
                                I (&acc)[M][P]) {
    constexpr int kStep = std::min(products_in_16_bits<L>(), kEnd - kBegin);
#pragma GCC unroll 8
    for (int begin = kBegin; begin < kEnd; begin += kStep) {
      I sum16[M][P];
#pragma GCC unroll 8
      for (int g = begin; g < begin + kStep; ++g) {
        I codes[P];
        load_group(chunk, table, g, codes);
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) {
          const I a = Ops::broadcast4(q + (g * M + m) * 4);
#pragma GCC unroll 2
          for (int p = 0; p < P; ++p) {
            const I products =
                Codes::kSigned ? Ops::products_signed(codes[p], a) : Ops::products(codes[p], a);
            sum16[m][p] = g == begin ? products : Ops::add16(sum16[m][p], products);
          }
        }
      }
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m)
#pragma GCC unroll 2
        for (int p = 0; p < P; ++p) acc[m][p] = Ops::add32(acc[m][p], Ops::madd16(sum16[m][p], factor(p)));
    }
  }

  template <int M>
  static void clear(I (&acc)[M][P]) {
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) acc[m][p] = Ops::zero();
  }

  // At chunk c of a span, asks for its share of weights that follow: many lines at once would fill the
  // buffers for misses. The last share reaches into the next span.
  static void prefetch_share(const std::byte* span, int c, Prefetch ahead) {
    constexpr int kShare = (quant::span_offsets(L, 8).size + 511) / 512 * 64;
    const std::byte* p = span + c * kShare;
#pragma GCC unroll 16
    for (int i = 0; i < kShare; i += 64) prefetch_beyond<Ops>(p + i, ahead);
  }

  template <int M, int kBegin>
  static void add_scaled_sixteen(const std::byte* chunk, I table, const int8_t* q, const I (&scales)[P],
                                 I (&acc)[M][P]) {
    I dot[M][P];
    clear<M>(dot);
    add_dots<M, kBegin, kBegin + 4>(chunk, table, q, dot);
#pragma GCC unroll 2
    for (int p = 0; p < P; ++p) {
      const I scale = Codes::top_scale16(scales[p]);
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) acc[m][p] = Ops::madd_add(acc[m][p], dot[m][p], scale);
    }
  }

  // acc[m][p] += the scale at the top of scales[p] * dot of groups [kBegin, kEnd) with row m.
  template <int M, int kBegin, int kEnd>
  static void add_scaled_dots(const std::byte* chunk, I table, const int8_t* q, const I (&scales)[P],
                              I (&acc)[M][P]) {
    if constexpr (kSixteenIn16Bits<Ops, L>) {
      add_scaled_sixteen<M, kBegin>(chunk, table, q, scales, acc);
      if constexpr (kEnd - kBegin == 8) add_scaled_sixteen<M, kBegin + 4>(chunk, table, q, scales, acc);
    } else if constexpr (Ops::kVnni) {
      I dot[M][P];
      clear<M>(dot);
      add_dots<M, kBegin, kEnd>(chunk, table, q, dot);
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) {
        const I scale = Codes::top_scale(scales[p]);
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) acc[m][p] = Ops::add32(acc[m][p], Ops::mul32(dot[m][p], scale));
      }
    } else {
      add_scaled_dots16<M, kBegin, kEnd>(
          chunk, table, q, [&](int p) { return Ops::twice(Codes::top_scale(scales[p])); }, acc);
    }
  }

  static void next_scale(I (&scales)[P]) {
#pragma GCC unroll 2
    for (int p = 0; p < P; ++p) scales[p] = Ops::shift_left32(scales[p], 8);
  }

  // What the sums of activations add to a span of one block: minimums, or codes' zeros.
  template <int M>
  static void add_pairs(const std::byte* sub, TileSpan x, I (&acc)[M][P]) {
    if constexpr (!Codes::kHasSub) {
      for (int word = 8; word < 12; ++word)
        for (int m = 0; m < M; ++m)
          for (int p = 0; p < P; ++p)
            acc[m][p] =
                Ops::madd_add(acc[m][p], Ops::all16(-Codes::kBias), Ops::broadcast4(x.sums + word * M + m));
    }
    for (int quad = 0; quad < Codes::kPairQuads; ++quad) {
      const int32_t* sums = x.sums + Codes::pair_sums(quad) * M;
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) {
        const typename Codes::Pairs pairs = Codes::pair_quad(sub + p * kVectorBytes, quad);
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) {
          acc[m][p] = Ops::madd_add(acc[m][p], pairs.low, Ops::broadcast4(sums + m));
          acc[m][p] = Ops::madd_add(acc[m][p], pairs.high, Ops::broadcast4(sums + M + m));
        }
      }
    }
  }

  // Adds the scaled codes of a span of one block.
  template <int M>
  static void add_span(const std::byte* span, I table, TileSpan x, Prefetch prefetch, I (&isum)[M][P]) {
    constexpr quant::SpanOffsets at = quant::span_offsets(L, 8);
    constexpr int kBytes = L.bits * 64;
    if constexpr (!Codes::kHasSub) {
#pragma GCC unroll 1
      for (int c = 0; c < 8; ++c) {
        prefetch_share(span, c, prefetch);
        add_dots<M, 0, 8>(span + c * kBytes, table, x.q + c * 32 * M, isum);
      }
      return;
    }
    for (int quad = 0; quad < Codes::kQuads; ++quad) {
      I scales[P];
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) scales[p] = Codes::scale_quad(span + at.sub + p * kVectorBytes, quad);
#pragma GCC unroll 1
      for (int i = 0; i < Codes::kChunksPerQuad; ++i) {
        const int c = quad * Codes::kChunksPerQuad + i;
        const std::byte* chunk = span + c * kBytes;
        const int8_t* q = x.q + c * 32 * M;
        prefetch_share(span, c, prefetch);
        if constexpr (L.sub_block() == 32) {
          add_scaled_dots<M, 0, 8>(chunk, table, q, scales, isum);
        } else {
          add_scaled_dots<M, 0, 4>(chunk, table, q, scales, isum);
          next_scale(scales);
          add_scaled_dots<M, 4, 8>(chunk, table, q, scales, isum);
        }
        next_scale(scales);
      }
    }
  }

  template <int M>
  static void span_256(const quant::PackedLayout& layout, const std::byte* span, int first, I table,
                       TileSpan x, Prefetch prefetch, F (&acc)[M][P]) {
    constexpr quant::SpanOffsets at = quant::span_offsets(L, 8);
    I isum[M][P];
    clear<M>(isum);
    const std::byte* lanes = span + first * kVectorBytes;
    if constexpr (!L.has_min) add_pairs<M>(lanes + at.sub, x, isum);
    add_span<M>(lanes, table, x, prefetch, isum);
    F t[M][P];
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) t[m][p] = Ops::to_float(isum[m][p]);
    I msum[M][P];
    if constexpr (L.has_min) {
      clear<M>(msum);
      add_pairs<M>(lanes + at.sub, x, msum);
    }
#pragma GCC unroll 2
    for (int p = 0; p < P; ++p) {
      const F d = Codes::load_d(layout, span + at.d, 0, first + p);
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) {
        if constexpr (L.has_min) {
          const F minimum = Codes::load_m(span + at.m, 0, first + p);
          t[m][p] = Ops::fmsub(d, t[m][p], Ops::mul(minimum, Ops::to_float(msum[m][p])));
        } else {
          t[m][p] = Ops::mul(d, t[m][p]);
        }
        acc[m][p] = Ops::fma(Ops::all(x.d[m]), t[m][p], acc[m][p]);
      }
    }
  }

  // Groups [kBegin, kEnd) of chunk c, which are float block `block`.
  template <int M, int kBegin, int kEnd>
  static void block_32(const quant::PackedLayout& layout, const std::byte* span, int first,
                       const quant::SpanOffsets& at, I table, int c, int block, TileSpan x, F (&acc)[M][P]) {
    const int32_t* sums = x.sums + c * M;
    // A word of sums is a pair: of groups 0 to 3 and 4 to 7.
    const I bias = kEnd - kBegin == 8 ? Ops::all16(-Codes::kBias)
                   : kBegin == 0      ? Ops::all32(-Codes::kBias & 0xFFFF)
                                      : Ops::all32(-Codes::kBias * 65536);
    I isum[M][P];
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      const I start =
          Codes::kBias == 0 ? Ops::zero() : Ops::madd_add(Ops::zero(), bias, Ops::broadcast4(sums + m));
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) isum[m][p] = start;
    }
    add_dots<M, kBegin, kEnd>(span + c * L.bits * 64 + first * kVectorBytes, table, x.q + c * 32 * M, isum);
#pragma GCC unroll 2
    for (int p = 0; p < P; ++p) {
      const F d = Codes::load_d(layout, span + at.d, block, first + p);
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) {
        F t = Ops::to_float(isum[m][p]);
        if constexpr (L.has_min) {
          const I sum = Ops::madd_add(Ops::zero(), Ops::all16(1), Ops::broadcast4(sums + m));
          t = Ops::fmsub(d, t, Ops::mul(Codes::load_m(span + at.m, block, first + p), Ops::to_float(sum)));
        } else {
          t = Ops::mul(d, t);
        }
        acc[m][p] = Ops::fma(Ops::all(x.d[c * M + m]), t, acc[m][p]);
      }
    }
  }

  template <int M>
  static void span_32(const quant::PackedLayout& layout, const std::byte* span, int first, int chunks,
                      I table, TileSpan x, Prefetch prefetch, F (&acc)[M][P]) {
    const quant::SpanOffsets at = quant::span_offsets(L, chunks);
#pragma GCC unroll 1
    for (int c = 0; c < chunks; ++c) {
      prefetch_share(span, c, prefetch);
      if constexpr (L.block == 32) {
        block_32<M, 0, 8>(layout, span, first, at, table, c, c, x, acc);
      } else {
        block_32<M, 0, 4>(layout, span, first, at, table, c, 2 * c, x, acc);
        block_32<M, 4, 8>(layout, span, first, at, table, c, 2 * c + 1, x, acc);
      }
    }
  }

  // Outputs of one panel for one tile: vectors [first, first + P).
  template <int M>
  static void panel(const quant::PackedLayout& layout, const std::byte* span, int first, int64_t inputs,
                    TileSpan x, Prefetch prefetch, F (&acc)[M][P]) {
    constexpr int kBlocks = quant::kSpan / L.activation_block();
    const I table = Codes::load_table(layout);
    for (int m = 0; m < M; ++m)
      for (int p = 0; p < P; ++p) acc[m][p] = Ops::all(0);
    for (int64_t s = 0; s < quant::num_spans(inputs); ++s) {
      const int chunks = quant::span_chunks(inputs, s);
      if constexpr (L.block == quant::kSpan) {
        span_256<M>(layout, span, first, table, x, prefetch, acc);
      } else {
        span_32<M>(layout, span, first, chunks, table, x, prefetch, acc);
      }
      span += quant::span_offsets(L, chunks).size;
      x.q += quant::kSpan * M;
      x.d += kBlocks * M;
      x.sums += kBlocks * sums_per_block(L.activation_block()) * M;
    }
  }
};

}  // namespace tercet::backend
