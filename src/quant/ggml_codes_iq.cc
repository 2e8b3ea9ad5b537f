#include "quant/ggml_codes_iq.h"

#include <bit>
#include <cstring>

#include "quant/iq_grids.h"

namespace tercet::quant {
namespace {

int nibble(uint8_t byte, int i) { return byte >> (4 * i) & 15; }

// Seven stored sign bits and the eighth, which makes their number even.
int even_signs(uint32_t seven) { return static_cast<int>(seven | (std::popcount(seven) & 1u) << 7); }

// Eight codes of the IQ1 and IQ2 types: two bits each from the grid, and a sign at bit 2.
void grid_codes(uint16_t entry, int signs, uint8_t* out) {
  for (int i = 0; i < 8; ++i) out[i] = static_cast<uint8_t>((entry >> (2 * i) & 3) | (signs >> i & 1) << 2);
}

// Both scales of a sub-block of 32.
void set_pair(TableBlock& out, int s, int scale) {
  out.scales[2 * s] = out.scales[2 * s + 1] = static_cast<int8_t>(scale);
}

int odd(int bits) { return 2 * bits + 1; }

}  // namespace

// The bit that IQ1 calls delta takes the place of the signs.
void read_table_block(const BlockIQ1_S& in, TableBlock& out) {
  out.d = in.d;
  for (int s = 0; s < 8; ++s) {
    const int qh = in.qh[s];
    set_pair(out, s, odd(qh >> 12 & 7));
    for (int g = 0; g < 4; ++g)
      grid_codes(kIQ1Grid[in.qs[4 * s + g] | (qh >> (3 * g) & 7) << 8], qh & 0x8000 ? 0 : 255,
                 out.codes + 32 * s + 8 * g);
  }
}

// The half-precision scale is spread over the top four bits of the four words of scales.
void read_table_block(const BlockIQ1_M& in, TableBlock& out) {
  int bits = 0;
  for (int i = 0; i < 4; ++i) bits |= (in.scales[i] >> 12) << (4 * i);
  out.d = static_cast<Half>(bits);
  for (int g = 0; g < 32; ++g) {
    const int s = g / 2, qh = nibble(in.qh[s], g % 2);
    out.scales[s] = static_cast<int8_t>(odd(in.scales[s / 4] >> (3 * (s % 4)) & 7));
    grid_codes(kIQ1Grid[in.qs[g] | (qh & 7) << 8], qh & 8 ? 0 : 255, out.codes + 8 * g);
  }
}

void read_table_block(const BlockIQ2_XXS& in, TableBlock& out) {
  out.d = in.d;
  for (int s = 0; s < 8; ++s) {
    const uint16_t* qs = in.qs + 4 * s;
    const uint32_t signs = qs[2] | static_cast<uint32_t>(qs[3]) << 16;  // four times seven, and the scale
    set_pair(out, s, odd(static_cast<int>(signs >> 28)));
    for (int g = 0; g < 4; ++g)
      grid_codes(kIQ2_XXSGrid[qs[g / 2] >> (8 * (g % 2)) & 255], even_signs(signs >> (7 * g) & 127),
                 out.codes + 32 * s + 8 * g);
  }
}

void read_table_block(const BlockIQ2_XS& in, TableBlock& out) {
  out.d = in.d;
  for (int g = 0; g < 32; ++g) {
    out.scales[g / 2] = static_cast<int8_t>(odd(nibble(in.scales[g / 4], g / 2 % 2)));
    grid_codes(kIQ2_XSGrid[in.qs[g] & 511], even_signs(in.qs[g] >> 9), out.codes + 8 * g);
  }
}

void read_table_block(const BlockIQ2_S& in, TableBlock& out) {
  out.d = in.d;
  for (int g = 0; g < 32; ++g) {
    out.scales[g / 2] = static_cast<int8_t>(odd(nibble(in.scales[g / 4], g / 2 % 2)));
    const int high = in.qh[g / 4] >> (2 * (g % 4)) & 3;
    grid_codes(kIQ2_SGrid[in.qs[g] | high << 8], in.signs[g], out.codes + 8 * g);
  }
}

void read_table_block(const BlockIQ3_XXS& in, TableBlock& out) {
  out.d = in.d;
  for (int s = 0; s < 8; ++s) {
    uint32_t word;
    std::memcpy(&word, in.scales_and_signs + 4 * s, sizeof word);
    set_pair(out, s, odd(static_cast<int>(word >> 28)));
    for (int i = 0; i < 32; ++i) {
      const int magnitude = kIQ3_XXSGrid[in.qs[8 * s + i / 4]] >> (4 * (i % 4)) & 7;
      const int signs = even_signs(word >> (7 * (i / 8)) & 127);
      out.codes[32 * s + i] = static_cast<uint8_t>(magnitude | (signs >> (i % 8) & 1) << 3);
    }
  }
}

void read_table_block(const BlockIQ3_S& in, TableBlock& out) {
  out.d = in.d;
  for (int s = 0; s < 8; ++s) set_pair(out, s, odd(nibble(in.scales[s / 2], s % 2)));
  for (int i = 0; i < kSuperBlock; ++i) {
    const int q = i / 4;
    const uint16_t entry = kIQ3_SGrid[in.qs[q] | (in.qh[i / 32] >> (q % 8) & 1) << 8];
    out.codes[i] = static_cast<uint8_t>((entry >> (4 * (i % 4)) & 7) | (in.signs[i / 8] >> (i % 8) & 1) << 3);
  }
}

void read_table_block(const BlockIQ4_XS& in, TableBlock& out) {
  out.d = in.d;
  for (int s = 0; s < 8; ++s) set_pair(out, s, iq4_xs_scale(in, s));
  for (int i = 0; i < kSuperBlock; ++i)
    out.codes[i] = static_cast<uint8_t>(nibble(in.qs[16 * (i / 32) + i % 16], i % 32 / 16));
}

}  // namespace tercet::quant
