// Many rows: a strip of a few panels is unpacked once a span into bytes that stay in the first cache, and
// tiles of rows times vectors of outputs stay in registers. What is unpacked no longer shows its format, so
// few kernels serve all.
#pragma once

#include <algorithm>

#include "backend/cpu/isa/linear_packed_few.h"

namespace tercet::backend {

// What a kernel for many rows is compiled for.
struct WideKind {
  int block;       // float block: 16, 32 or 256
  int sub_block;   // inputs that share a sub-scale; 0: none
  bool has_min;    // msum is kept apart
  bool is_signed;  // codes are signed (without VNNI)
  int in_16_bits;  // products that a 16-bit lane can add up, two at a time (with VNNI: 8 or 0)

  constexpr bool operator==(const WideKind&) const = default;
};

// A span of kVectors vectors of outputs.
template <class Ops>
struct WideSpan {
  static constexpr int P = Ops::kManyVectors;
  typename Ops::I codes[64][P];       // [group]
  typename Ops::I scales[16][P];      // [sub-block]: as 32 bits, or twice as 16 (without VNNI), or once
  typename Ops::I pairs[8][P];        // as PackedCodes::Pairs, low and high of each quad
  typename Ops::F d[16][P], m[8][P];  // [float block]
  typename Ops::I bias;               // -kBias in all 16-bit lanes
  int num_pairs = 0;
  int pair_sums = 0;  // the word of sums that belongs to pairs[0]
};

template <class Ops, WideKind K>
struct ManyRows {
  using I = typename Ops::I;
  using F = typename Ops::F;
  using Span = WideSpan<Ops>;
  static constexpr int M = Ops::kManyRows;
  static constexpr int P = Ops::kManyVectors;

  // acc[m][p] += dot of kCount groups from `begin` with row m. q is at group 0.
  template <int kCount>
  static void add_dots(const Span& w, int begin, const int8_t* q, I (&acc)[M][P]) {
    if constexpr (Ops::kVnni) {
#pragma GCC unroll 8
      for (int i = 0; i < kCount; ++i) {
        const int g = begin + i;
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) {
          const I a = Ops::broadcast4(q + (g * M + m) * 4);
#pragma GCC unroll 4
          for (int p = 0; p < P; ++p) acc[m][p] = Ops::dot4(acc[m][p], w.codes[g][p], a);
        }
      }
    } else {
      add_scaled_dots16<kCount>(
          w, begin, q, [](int) { return Ops::all16(1); }, acc);
    }
  }

  template <int kCount, class Factor>
  static void add_scaled_dots16(const Span& w, int begin, const int8_t* q, const Factor& factor,
                                I (&acc)[M][P]) {
    constexpr int kStep = std::min(K.in_16_bits, kCount);
    for (int g0 = begin; g0 < begin + kCount; g0 += kStep) {
      I sum16[M][P];
#pragma GCC unroll 8
      for (int g = 0; g < kStep; ++g) {
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) {
          const I a = Ops::broadcast4(q + ((g0 + g) * M + m) * 4);
#pragma GCC unroll 4
          for (int p = 0; p < P; ++p) {
            const I code = w.codes[g0 + g][p];
            const I products = K.is_signed ? Ops::products_signed(code, a) : Ops::products(code, a);
            sum16[m][p] = g == 0 ? products : Ops::add16(sum16[m][p], products);
          }
        }
      }
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
        for (int p = 0; p < P; ++p) acc[m][p] = Ops::add32(acc[m][p], Ops::madd16(sum16[m][p], factor(p)));
    }
  }

  static void clear(I (&acc)[M][P]) {
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) acc[m][p] = Ops::zero();
  }

  static void add_sub_block(const Span& w, int i, const int8_t* q, I (&isum)[M][P]) {
    constexpr int kGroups = K.sub_block / 4;
    if constexpr (Ops::kVnni && K.in_16_bits == 8) {
#pragma GCC unroll 2
      for (int sixteen = 0; sixteen < kGroups; sixteen += 4) {
        I dot[M][P];
        clear(dot);
        add_dots<4>(w, i * kGroups + sixteen, q, dot);
#pragma GCC unroll 4
        for (int p = 0; p < P; ++p) {
          const I scale = w.scales[i][p];
#pragma GCC unroll 8
          for (int m = 0; m < M; ++m) isum[m][p] = Ops::madd_add(isum[m][p], dot[m][p], scale);
        }
      }
    } else if constexpr (Ops::kVnni) {
      I dot[M][P];
      clear(dot);
      add_dots<kGroups>(w, i * kGroups, q, dot);
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) {
        const I scale = w.scales[i][p];
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) isum[m][p] = Ops::add32(isum[m][p], Ops::mul32(dot[m][p], scale));
      }
    } else {
      add_scaled_dots16<kGroups>(
          w, i * kGroups, q, [&](int p) { return w.scales[i][p]; }, isum);
    }
  }

  static void add_pairs(const Span& w, const int32_t* sums, I (&acc)[M][P]) {
    for (int i = 0; i < w.num_pairs; ++i) {
      const int32_t* word = sums + (w.pair_sums + i) * M;
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
        for (int p = 0; p < P; ++p)
          acc[m][p] = Ops::madd_add(acc[m][p], w.pairs[i][p], Ops::broadcast4(word + m));
    }
  }

  static void span_256(const Span& w, const TileSpan& x, F (*acc)[P]) {
    I isum[M][P];
    clear(isum);
    if constexpr (!K.has_min) add_pairs(w, x.sums, isum);
    if constexpr (K.sub_block == 0) {
#pragma GCC unroll 1
      for (int g = 0; g < 64; g += 8) add_dots<8>(w, g, x.q, isum);
    } else {
#pragma GCC unroll 1
      for (int i = 0; i < quant::kSpan / K.sub_block; ++i) add_sub_block(w, i, x.q, isum);
    }
    F t[M][P];
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) t[m][p] = Ops::to_float(isum[m][p]);
    if constexpr (K.has_min) {
      I msum[M][P];
      clear(msum);
      add_pairs(w, x.sums, msum);
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
        for (int p = 0; p < P; ++p)
          t[m][p] = Ops::fmsub(w.d[0][p], t[m][p], Ops::mul(w.m[0][p], Ops::to_float(msum[m][p])));
    } else {
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
        for (int p = 0; p < P; ++p) t[m][p] = Ops::mul(w.d[0][p], t[m][p]);
    }
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) acc[m][p] = Ops::fma(Ops::all(x.d[m]), t[m][p], acc[m][p]);
  }

  // Float block `block`, kCount groups from `begin`, of chunk c.
  template <int kCount>
  static void block_32(const Span& w, int c, int block, int begin, I bias, const TileSpan& x,
                       F (&acc)[M][P]) {
    const int32_t* sums = x.sums + c * M;
    I isum[M][P];
    if constexpr (K.has_min) {
      clear(isum);
    } else {
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) {
        const I corrected = Ops::madd_add(Ops::zero(), bias, Ops::broadcast4(sums + m));
#pragma GCC unroll 4
        for (int p = 0; p < P; ++p) isum[m][p] = corrected;
      }
    }
    add_dots<kCount>(w, begin, x.q, isum);
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      const F da = Ops::all(x.d[c * M + m]);
      F msum = Ops::all(0);
      if constexpr (K.has_min)
        msum = Ops::to_float(Ops::madd_add(Ops::zero(), Ops::all16(1), Ops::broadcast4(sums + m)));
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) {
        F t = Ops::to_float(isum[m][p]);
        t = K.has_min ? Ops::fmsub(w.d[block][p], t, Ops::mul(w.m[block][p], msum))
                      : Ops::mul(w.d[block][p], t);
        acc[m][p] = Ops::fma(da, t, acc[m][p]);
      }
    }
  }

  // One tile of rows: acc [M][P] is continued from the spans before. (x by value would be copied through
  // memory in pieces of another size, which waits for all stores before.)
  [[gnu::noinline]] static void span(const Span& w, int chunks, const TileSpan& x, F (*acc)[P]) {
    if constexpr (K.block == quant::kSpan) return span_256(w, x, acc);
    F sums[M][P];
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) sums[m][p] = acc[m][p];
    for (int c = 0; c < chunks; ++c) {
      if constexpr (K.block == 32) {
        block_32<8>(w, c, c, 8 * c, w.bias, x, sums);
      } else {
        // A word of sums is a pair, of groups 0 to 3 and 4 to 7.
        block_32<4>(w, c, 2 * c, 8 * c, Ops::shift_right32(w.bias, 16), x, sums);
        block_32<4>(w, c, 2 * c + 1, 8 * c + 4, Ops::shift_left32(w.bias, 16), x, sums);
      }
    }
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) acc[m][p] = sums[m][p];
  }
};

// A format's way into the kernels for many rows.
template <class Ops, quant::PackedShape L>
struct Widen {
  using Codes = PackedCodes<Ops, L>;
  static constexpr int in_16_bits() {
    if (!Ops::kVnni) return products_in_16_bits<L>();
    return Codes::kHasSub && kSixteenIn16Bits<Ops, L> ? 8 : 0;
  }
  // Products in 16 bits are multiplied with something anyway, and GCC 12 (-ftree-pre) puts those of one sum
  // after the other where it is always 1: so whole spans have sub-scales, of 1.
  static constexpr bool kHasOnes = L.block == quant::kSpan && !Codes::kHasSub && !Ops::kVnni;
  static constexpr WideKind kKind = {L.block,
                                     Codes::kHasSub ? L.sub_block()
                                     : kHasOnes     ? 32
                                                    : 0,
                                     L.has_min, !Ops::kVnni && Codes::kSigned, in_16_bits()};
  using Rows = ManyRows<Ops, kKind>;

  // The rows of half `half` of a panel's span, as vector p.
  static void vector(const quant::PackedLayout& layout, const std::byte* span, int chunks, int half, int p,
                     WideSpan<Ops>& out) {
    const quant::SpanOffsets at = quant::span_offsets(L, chunks);
    const typename Ops::I table = Codes::load_table(layout);
    const int lanes = half * Ops::kRows * 4;
    for (int c = 0; c < chunks; ++c) {
#pragma GCC unroll 8
      for (int g = 0; g < 8; ++g)
        out.codes[c * 8 + g][p] = Codes::group(span + c * at.codes_per_chunk + lanes, table, g);
    }
    for (int b = 0; b < chunks * quant::kChunk / L.block; ++b) {
      out.d[b][p] = Codes::load_d(layout, span + at.d, b, half);
      if constexpr (L.has_min) out.m[b][p] = Codes::load_m(span + at.m, b, half);
    }
    out.bias = Ops::all16(-Codes::kBias);
    if constexpr (Codes::kHasSub) sub_scales(span + at.sub + lanes, p, out);
    if constexpr (L.block == quant::kSpan && !Codes::kHasSub) {
      out.num_pairs = 4;
      out.pair_sums = 8;
      for (int i = 0; i < 4; ++i) out.pairs[i][p] = out.bias;
      for (int i = 0; kHasOnes && i < quant::kSpan / 32; ++i) out.scales[i][p] = Ops::all16(1);
    }
  }

 private:
  static void sub_scales(const std::byte* sub, int p, WideSpan<Ops>& out) {
    for (int quad = 0; quad < Codes::kQuads * (Codes::kHasSub ? 1 : 0); ++quad) {
      typename Ops::I scales = Codes::scale_quad(sub, quad);
      for (int j = 0; j < 4; ++j) {
        const typename Ops::I scale = Codes::top_scale(scales);
        out.scales[quad * 4 + j][p] = kSixteenIn16Bits<Ops, L> ? Codes::top_scale16(scales)
                                      : Ops::kVnni             ? scale
                                                               : Ops::twice(scale);
        scales = Ops::shift_left32(scales, 8);
      }
    }
    out.num_pairs = 2 * Codes::kPairQuads;
    out.pair_sums = Codes::pair_sums(0);
    for (int quad = 0; quad < Codes::kPairQuads; ++quad) {
      const auto pairs = Codes::pair_quad(sub, quad);
      out.pairs[2 * quad][p] = pairs.low;
      out.pairs[2 * quad + 1][p] = pairs.high;
    }
  }
};

}  // namespace tercet::backend
