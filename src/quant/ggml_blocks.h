// The blocks of ggml's quantized types as they lie in a file (ggml-common.h names the same structs block_q4_0
// and so on; sizes are those of tensor/dtype.h). Fields named d, dmin, m are IEEE halves. Plain bytes:
// alignment 2 at most, except where a float says otherwise; read them with memcpy or from data aligned to 2.
//
// In the 32-element types element i < 16 sits in the low nibble of byte i and element i + 16 in the high
// nibble.
#pragma once

#include <bit>
#include <cstdint>

#include "tensor/dtype.h"

namespace tercet::quant {

inline constexpr int kBlock = 32;        // elements in a block of the simple types
inline constexpr int kSuperBlock = 256;  // elements in a block of the k, i and ternary types

using Half = uint16_t;

struct BlockQ4_0 {  // d * (q - 8)
  Half d;
  uint8_t qs[16];
};
struct BlockQ4_1 {  // d * q + m
  Half d, m;
  uint8_t qs[16];
};
struct BlockQ5_0 {  // d * (q - 16); bit i of qh is the fifth bit of element i
  Half d;
  uint8_t qh[4];
  uint8_t qs[16];
};
struct BlockQ5_1 {  // d * q + m
  Half d, m;
  uint8_t qh[4];
  uint8_t qs[16];
};
struct BlockQ8_0 {  // d * q
  Half d;
  int8_t qs[32];
};

// 16 sub-blocks of 16: (d * scale) * q - (dmin * min), scale and min in the low and high nibble of scales[i].
// Elements 128 h + 32 j + l lie in bits 2 j of qs[32 h + l].
struct BlockQ2_K {
  uint8_t scales[16];
  uint8_t qs[64];
  Half d, dmin;
};
// 16 sub-blocks of 16: d * (scale - 32) * q. The low two bits of q are laid out as in Q2_K; the third one is
// bit 4 h + j of hmask[l], and q is 4 lower where it is clear. The 6-bit scales: q3_k_scale.
struct BlockQ3_K {
  uint8_t hmask[32];
  uint8_t qs[64];
  uint8_t scales[12];
  Half d;
};
// 8 sub-blocks of 32: (d * scale) * q - (dmin * min); the 6-bit scales and mins: q4_k_scale_min. Sub-blocks 2
// j and 2 j + 1 lie in the low and high nibbles of qs[32 j .. 32 j + 31].
struct BlockQ4_K {
  Half d, dmin;
  uint8_t scales[12];
  uint8_t qs[128];
};
// As Q4_K; bit s of qh[l] is the fifth bit of element l of sub-block s.
struct BlockQ5_K {
  Half d, dmin;
  uint8_t scales[12];
  uint8_t qh[32];
  uint8_t qs[128];
};
// 16 sub-blocks of 16: (d * scale) * (q - 32). In each half h of 128, element 32 j + l has its low four bits
// in the (j / 2) nibble of ql[64 h + 32 (j % 2) + l] and its high two in bits 2 j of qh[32 h + l].
struct BlockQ6_K {
  uint8_t ql[128];
  uint8_t qh[64];
  int8_t scales[16];
  Half d;
};

// The FP4 (e2m1) values, doubled; the scales below make up for it.
inline constexpr int8_t kFP4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// The tables and scales of the i-quants: quant/ggml_codes_iq.h.
struct BlockIQ4_NL {
  Half d;
  uint8_t qs[16];
};
struct BlockIQ4_XS {  // 8 sub-blocks of 32
  Half d;
  uint16_t scales_h;
  uint8_t scales_l[4];
  uint8_t qs[128];
};
struct BlockIQ2_XXS {
  Half d;
  uint16_t qs[32];
};
struct BlockIQ2_XS {
  Half d;
  uint16_t qs[32];
  uint8_t scales[8];
};
struct BlockIQ2_S {
  Half d;
  uint8_t qs[32];
  uint8_t signs[32];
  uint8_t qh[8];
  uint8_t scales[8];
};
struct BlockIQ3_XXS {
  Half d;
  uint8_t qs[64];
  uint8_t scales_and_signs[32];
};
struct BlockIQ3_S {
  Half d;
  uint8_t qs[64];
  uint8_t qh[8];
  uint8_t signs[32];
  uint8_t scales[4];
};
struct BlockIQ1_S {
  Half d;
  uint8_t qs[32];
  uint16_t qh[8];
};
struct BlockIQ1_M {
  uint8_t qs[32];
  uint8_t qh[16];
  uint16_t scales[4];
};
struct BlockTQ1_0 {  // d * (t - 1), five trits to a byte of qs, four to a byte of qh
  uint8_t qs[48];
  uint8_t qh[4];
  Half d;
};
struct BlockTQ2_0 {  // d * (q - 1)
  uint8_t qs[64];
  Half d;
};
struct BlockMXFP4 {  // 2^(e - 128) * kFP4Values[q], the values doubled
  uint8_t e;
  uint8_t qs[16];
};
struct BlockNVFP4 {  // four sub-blocks of 16, each with an unsigned e4m3 scale
  uint8_t d[4];
  uint8_t qs[32];
};
struct BlockQ1_0 {  // d or -d
  Half d;
  uint8_t qs[16];
};
struct BlockQ2_0 {  // d * (q - 1)
  Half d;
  uint8_t qs[16];
};

static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22);
static_assert(sizeof(BlockQ5_1) == 24 && sizeof(BlockQ8_0) == 34 && sizeof(BlockQ2_K) == 84);
static_assert(sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144 && sizeof(BlockQ5_K) == 176);
static_assert(sizeof(BlockQ6_K) == 210 && sizeof(BlockIQ4_NL) == 18 && sizeof(BlockIQ4_XS) == 136);
static_assert(sizeof(BlockIQ2_XXS) == 66 && sizeof(BlockIQ2_XS) == 74 && sizeof(BlockIQ2_S) == 82);
static_assert(sizeof(BlockIQ3_XXS) == 98 && sizeof(BlockIQ3_S) == 110 && sizeof(BlockIQ1_S) == 50);
static_assert(sizeof(BlockIQ1_M) == 56 && sizeof(BlockTQ1_0) == 54 && sizeof(BlockTQ2_0) == 66);
static_assert(sizeof(BlockMXFP4) == 17 && sizeof(BlockNVFP4) == 36 && sizeof(BlockQ1_0) == 18);
static_assert(sizeof(BlockQ2_0) == 18);

// Scale of sub-block s (0 to 15) of Q3_K, -32 to 31: four bits in a nibble of bytes 0 to 7, two in bytes 8
// to 11.
inline int q3_k_scale(const BlockQ3_K& block, int s) {
  const int low = block.scales[s % 8] >> (s < 8 ? 0 : 4) & 15;
  const int high = block.scales[8 + s % 4] >> (2 * (s / 4)) & 3;
  return (low | high << 4) - 32;
}

struct ScaleMin {
  int scale, min;  // 0 to 63
};

// Scale and minimum of sub-block s (0 to 7) of Q4_K and Q5_K from their 12 packed bytes.
inline ScaleMin q4_k_scale_min(const uint8_t scales[12], int s) {
  if (s < 4) return {scales[s] & 63, scales[s + 4] & 63};
  return {(scales[s + 4] & 15) | (scales[s - 4] >> 6) << 4, (scales[s + 4] >> 4) | (scales[s] >> 6) << 4};
}

// Scale of sub-block s (0 to 7) of IQ4_XS, -32 to 31.
inline int iq4_xs_scale(const BlockIQ4_XS& block, int s) {
  const int low = block.scales_l[s / 2] >> (s % 2 * 4) & 15;
  return (low | (block.scales_h >> (2 * s) & 3) << 4) - 32;
}

// Half of 2^(e - 127), the MX scale (e8m0) for doubled values. Bits, since e < 2 gives a subnormal.
inline float half_e8m0_to_f32(uint8_t e) {
  return std::bit_cast<float>(e < 2 ? 0x00200000u << e : (e - 1u) << 23);
}

// Half of an unsigned e4m3 scale; 0x7f (NaN) counts as zero, as in ggml.
inline float half_ue4m3_to_f32(uint8_t x) {
  if (x == 0x7f) return 0;
  const int exponent = x >> 3 & 15, mantissa = x & 7;
  if (exponent == 0) return static_cast<float>(mantissa) * 0x1p-10f;
  return std::bit_cast<float>((exponent + 119u) << 23 | static_cast<uint32_t>(mantissa) << 20);
}

}  // namespace tercet::quant
