#include "quant/codec_iq.h"

#include <bit>
#include <cstring>

#include "base/float16.h"
#include "quant/iq_grids.h"

namespace tercet::quant {
namespace {

float negate_if(bool negative, float value) { return negative ? -value : value; }

// Eight values of the IQ2 types; bit i of `signs` negates value i.
void grid2(float scale, uint16_t entry, int signs, float* out) {
  for (int i = 0; i < 8; ++i)
    out[i] = negate_if(signs >> i & 1, scale * static_cast<float>(kIQ2Values[entry >> (2 * i) & 3]));
}

// Eight values of the IQ1 types.
void grid1(float scale, float delta, uint16_t entry, float* out) {
  for (int i = 0; i < 8; ++i) out[i] = scale * (static_cast<float>((entry >> (2 * i) & 3) - 1) + delta);
}

// Seven stored sign bits and the eighth, which makes their number even.
int even_signs(uint32_t seven) { return static_cast<int>(seven | (std::popcount(seven) & 1u) << 7); }

int nibble(uint8_t byte, int i) { return byte >> (4 * i) & 15; }

constexpr float kDelta = 0.125f;  // IQ1_S and IQ1_M

}  // namespace

void iq1_s(const BlockIQ1_S& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int s = 0; s < 8; ++s) {
    const int qh = block.qh[s];
    const float scale = d * static_cast<float>(2 * (qh >> 12 & 7) + 1);
    const float delta = qh & 0x8000 ? -kDelta : kDelta;
    for (int g = 0; g < 4; ++g)
      grid1(scale, delta, kIQ1Grid[block.qs[4 * s + g] | (qh >> (3 * g) & 7) << 8], out + 32 * s + 8 * g);
  }
}

// The half-precision scale is spread over the top four bits of the four words of scales.
void iq1_m(const BlockIQ1_M& block, float* out) {
  int bits = 0;
  for (int i = 0; i < 4; ++i) bits |= (block.scales[i] >> 12) << (4 * i);
  const float d = f16_to_f32(static_cast<uint16_t>(bits));
  for (int g = 0; g < 32; ++g) {
    const int s = g / 2;
    const float scale = d * static_cast<float>(2 * (block.scales[s / 4] >> (3 * (s % 4)) & 7) + 1);
    const int qh = nibble(block.qh[s], g % 2);
    grid1(scale, qh & 8 ? -kDelta : kDelta, kIQ1Grid[block.qs[g] | (qh & 7) << 8], out + 8 * g);
  }
}

void iq2_xxs(const BlockIQ2_XXS& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int s = 0; s < 8; ++s) {
    const uint16_t* qs = block.qs + 4 * s;
    const uint32_t signs = qs[2] | static_cast<uint32_t>(qs[3]) << 16;  // four times seven, and the scale
    const float scale = d * (0.5f + static_cast<float>(signs >> 28)) * 0.25f;
    for (int g = 0; g < 4; ++g)
      grid2(scale, kIQ2_XXSGrid[qs[g / 2] >> (8 * (g % 2)) & 255], even_signs(signs >> (7 * g) & 127),
            out + 32 * s + 8 * g);
  }
}

void iq2_xs(const BlockIQ2_XS& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int g = 0; g < 32; ++g) {
    const float scale = d * (0.5f + static_cast<float>(nibble(block.scales[g / 4], g / 2 % 2))) * 0.25f;
    grid2(scale, kIQ2_XSGrid[block.qs[g] & 511], even_signs(block.qs[g] >> 9), out + 8 * g);
  }
}

void iq2_s(const BlockIQ2_S& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int g = 0; g < 32; ++g) {
    const float scale = d * (0.5f + static_cast<float>(nibble(block.scales[g / 4], g / 2 % 2))) * 0.25f;
    const int high = block.qh[g / 4] >> (2 * (g % 4)) & 3;
    grid2(scale, kIQ2_SGrid[block.qs[g] | high << 8], block.signs[g], out + 8 * g);
  }
}

void iq3_xxs(const BlockIQ3_XXS& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int s = 0; s < 8; ++s) {
    uint32_t word;
    std::memcpy(&word, block.scales_and_signs + 4 * s, sizeof word);
    const float scale = d * (0.5f + static_cast<float>(word >> 28)) * 0.5f;
    for (int i = 0; i < 32; ++i) {
      const uint16_t entry = kIQ3_XXSGrid[block.qs[8 * s + i / 4]];
      const int value = kIQ3_XXSValues[entry >> (4 * (i % 4)) & 7];
      const int signs = even_signs(word >> (7 * (i / 8)) & 127);
      out[32 * s + i] = negate_if(signs >> (i % 8) & 1, scale * static_cast<float>(value));
    }
  }
}

void iq3_s(const BlockIQ3_S& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < kSuperBlock; ++i) {
    const int s = i / 32, q = i / 4;
    const float scale = d * static_cast<float>(2 * nibble(block.scales[s / 2], s % 2) + 1);
    const uint16_t entry = kIQ3_SGrid[block.qs[q] | (block.qh[s] >> (q % 8) & 1) << 8];
    const int value = 2 * (entry >> (4 * (i % 4)) & 7) + 1;
    out[i] = negate_if(block.signs[i / 8] >> (i % 8) & 1, scale * static_cast<float>(value));
  }
}

void iq4_nl(const BlockIQ4_NL& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(kIQ4Values[block.qs[i] & 15]);
    out[i + 16] = d * static_cast<float>(kIQ4Values[block.qs[i] >> 4]);
  }
}

void iq4_xs(const BlockIQ4_XS& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < kSuperBlock; ++i) {
    const int s = i / 32;
    const int q = nibble(block.qs[16 * s + i % 16], i % 32 / 16);
    out[i] = d * static_cast<float>(iq4_xs_scale(block, s)) * static_cast<float>(kIQ4Values[q]);
  }
}

}  // namespace tercet::quant
