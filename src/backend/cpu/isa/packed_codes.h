// Reading packed weights into registers: codes from their planes, sub-scales, scales. For any instruction set
// with byte dot products.
//
// `Ops` (int_ops_*.h) is the instruction set: registers I of kRows groups of four bytes, F of kRows float32.
// Where it has VNNI, codes are unsigned: signed ones are 128 too large (`kBias`), which the sums of the
// activations put right.
#pragma once

#include <bit>

#include "backend/cpu/kernels.h"

namespace tercet::backend {

template <class Ops, quant::PackedShape L>
struct PackedCodes {
  using I = typename Ops::I;
  using F = typename Ops::F;
  static constexpr bool kSigned = L.bits == 8 || (L.has_table && L.zero == 0);
  static constexpr int kBias = L.zero + (kSigned && Ops::kVnni ? 128 : 0);
  static constexpr bool kHasSub = L.sub != quant::SubScale::kNone;
  static constexpr int kChunksPerQuad = L.sub_block() / 8;  // a quad is a word of four sub-scales
  static constexpr int kQuads = quant::kSpan / quant::kChunk / kChunksPerQuad;

  // The weight's table as the dot product wants its values.
  static I load_table(const quant::PackedLayout& layout) {
    if constexpr (!L.has_table) return Ops::zero();
    const I table = Ops::repeat16(layout.table);
    if constexpr (!kSigned) return Ops::add8(table, Ops::all8(L.zero));
    return Ops::kVnni ? Ops::flip_sign_bits(table) : table;
  }

  // Codes of group g of the chunk at `chunk`.
  static I group(const std::byte* chunk, I table, int g) {
    if constexpr (L.bits == 8) {
      const I code = Ops::load(chunk + g * 64);
      return Ops::kVnni ? Ops::flip_sign_bits(code) : code;
    }
    I code = Ops::zero();
    if constexpr (L.bits >= 4) {
      const I both = Ops::load(chunk + g % 4 * 64);
      code = Ops::template and_bytes<0x0F>(g < 4 ? both : Ops::shift_right16(both, 4));
      chunk += 256;
    }
    if constexpr (L.bits == 2 || L.bits == 3 || L.bits == 6) {
      const I two = Ops::template and_bytes<3>(Ops::shift_right16(Ops::load(chunk + g / 4 * 64), g % 4 * 2));
      code = L.bits == 6 ? Ops::or_bits(code, Ops::shift_left16(two, 4)) : two;
      chunk += 128;
    }
    if constexpr (L.bits == 3 || L.bits == 5) {
      const I one = Ops::template and_bytes<1>(Ops::shift_right16(Ops::load(chunk), g));
      code = Ops::or_bits(code, Ops::shift_left16(one, L.bits - 1));
    }
    return L.has_table ? Ops::lookup(table, code) : code;
  }

  // Four sub-scales in each word, the first in the highest byte; `sub` is at this half's rows.
  static I scale_quad(const std::byte* sub, int quad) {
    if constexpr (L.sub == quant::SubScale::kScaleMin) return six_bits(sub, quad, 0);
    const I words = Ops::load(sub + quad * 64);
    return L.sub == quant::SubScale::kNibbles ? Ops::template and_bytes<0x0F>(words) : words;
  }
  // The scale in the highest byte, as 32 bits.
  static I top_scale(I quad) {
    return L.sub == quant::SubScale::kPair ? Ops::shift_right32_signed(quad, 24)
                                           : Ops::shift_right32(quad, 24);
  }
  // The same as 16 bits, with zeros above.
  static I top_scale16(I quad) {
    const I scale = top_scale(quad);
    return L.sub == quant::SubScale::kPair ? Ops::shift_right32(Ops::shift_left32(scale, 16), 16) : scale;
  }

  // What is multiplied with the sums of activations: minimums, or scales times -kBias. Bytes 0 and 2 of a
  // quad's words (sub-blocks 3 and 1) as 16-bit pairs, and bytes 1 and 3.
  struct Pairs {
    I low, high;
  };
  static Pairs pair_quad(const std::byte* sub, int quad) {
    if constexpr (L.sub == quant::SubScale::kPair) {
      constexpr auto kFactor = static_cast<unsigned>(kBias == 0 ? 1 : kBias);
      static_assert(std::has_single_bit(kFactor));
      constexpr int kShift = std::countr_zero(kFactor);
      const I words = Ops::load(sub + quad * 64);
      const auto times_bias = [](I v) { return Ops::sub16(Ops::zero(), Ops::shift_left16(v, kShift)); };
      return {times_bias(Ops::shift_right16_signed(Ops::shift_left16(words, 8), 8)),
              times_bias(Ops::shift_right16_signed(words, 8))};
    }
    const I minimums = L.sub == quant::SubScale::kScaleMin
                           ? six_bits(sub, quad, 1)
                           : Ops::template and_bytes<0x0F>(Ops::shift_right16(Ops::load(sub + quad * 64), 4));
    return {Ops::template and_words<0xFF>(minimums), Ops::shift_right16(minimums, 8)};
  }
  static constexpr int kPairQuads = kHasSub && (L.has_min || kBias != 0) ? kQuads : 0;
  // Where the sums that belong to a quad's pairs begin among those of a block of 256 (QuantizedRows).
  static constexpr int pair_sums(int quad) {
    return (L.sub == quant::SubScale::kScaleMin ? 8 : 0) + quad * 2;
  }

  // d of float block `block`, of the rows of half `half`.
  static F load_d(const quant::PackedLayout& layout, const std::byte* d, int block, int half) {
    const int lane = block * quant::kPanelRows + half * Ops::kRows;
    if constexpr (L.e8m0) return Ops::load_half_e8m0(d + lane);
    const F value = Ops::load_f16(d + lane * 2);
    return L.has_table ? Ops::mul(value, Ops::all(layout.factor)) : value;
  }
  static F load_m(const std::byte* m, int block, int half) {
    return Ops::load_f16(m + (block * quant::kPanelRows + half * Ops::kRows) * 2);
  }

 private:
  // Six-bit scales (which = 0) or minimums (1) of a kScaleMin span.
  static I six_bits(const std::byte* sub, int quad, int which) {
    const I first = Ops::load(sub + which * 64);
    if (quad == 0) return Ops::template and_bytes<0x3F>(first);
    const I low = Ops::load(sub + 128);
    return Ops::or_bits(Ops::template and_bytes<0x0F>(which == 0 ? low : Ops::shift_right16(low, 4)),
                        Ops::template and_bytes<0x30>(Ops::shift_right16(first, 2)));
  }
};

}  // namespace tercet::backend
