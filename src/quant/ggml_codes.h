// The integer code of each element of a ggml block, as an unsigned number (Q8_0: signed): what the packed
// layouts store. The functions fill out[elements of the block].
#pragma once

#include <cstdint>

#include "quant/ggml_blocks.h"

namespace tercet::quant {

inline void codes_of(const BlockQ4_0& block, uint8_t* out) {
  for (int i = 0; i < 16; ++i) out[i] = block.qs[i] & 15, out[i + 16] = block.qs[i] >> 4;
}
inline void codes_of(const BlockQ4_1& block, uint8_t* out) {
  for (int i = 0; i < 16; ++i) out[i] = block.qs[i] & 15, out[i + 16] = block.qs[i] >> 4;
}

// Q5_0 and Q5_1 share the layout of their codes.
inline void codes_of_five_bits(const uint8_t qh[4], const uint8_t qs[16], uint8_t* out) {
  for (int i = 0; i < 16; ++i) {
    out[i] = static_cast<uint8_t>((qs[i] & 15) | (qh[i / 8] >> (i % 8) & 1) << 4);
    out[i + 16] = static_cast<uint8_t>(qs[i] >> 4 | (qh[2 + i / 8] >> (i % 8) & 1) << 4);
  }
}
inline void codes_of(const BlockQ5_0& block, uint8_t* out) { codes_of_five_bits(block.qh, block.qs, out); }
inline void codes_of(const BlockQ5_1& block, uint8_t* out) { codes_of_five_bits(block.qh, block.qs, out); }

inline void codes_of(const BlockQ8_0& block, uint8_t* out) {
  for (int i = 0; i < 32; ++i) out[i] = static_cast<uint8_t>(block.qs[i]);
}

// Two bits of element i of Q2_K, Q3_K and TQ2_0.
inline int two_bits(const uint8_t qs[64], int i) {
  return qs[i / 128 * 32 + i % 32] >> (2 * (i % 128 / 32)) & 3;
}
inline void codes_of(const BlockQ2_K& block, uint8_t* out) {
  for (int i = 0; i < kSuperBlock; ++i) out[i] = static_cast<uint8_t>(two_bits(block.qs, i));
}
inline void codes_of(const BlockQ3_K& block, uint8_t* out) {
  for (int i = 0; i < kSuperBlock; ++i)
    out[i] = static_cast<uint8_t>(two_bits(block.qs, i) | (block.hmask[i % 32] >> (i / 32) & 1) << 2);
}
inline void codes_of(const BlockQ4_K& block, uint8_t* out) {
  for (int j = 0; j < 4; ++j)
    for (int l = 0; l < 32; ++l) {
      out[j * 64 + l] = block.qs[j * 32 + l] & 15;
      out[j * 64 + 32 + l] = block.qs[j * 32 + l] >> 4;
    }
}
inline void codes_of(const BlockQ5_K& block, uint8_t* out) {
  for (int j = 0; j < 4; ++j)
    for (int l = 0; l < 32; ++l) {
      out[j * 64 + l] = static_cast<uint8_t>((block.qs[j * 32 + l] & 15) | (block.qh[l] >> (2 * j) & 1) << 4);
      out[j * 64 + 32 + l] =
          static_cast<uint8_t>(block.qs[j * 32 + l] >> 4 | (block.qh[l] >> (2 * j + 1) & 1) << 4);
    }
}
inline void codes_of(const BlockQ6_K& block, uint8_t* out) {
  for (int half = 0; half < 2; ++half)
    for (int j = 0; j < 4; ++j)
      for (int l = 0; l < 32; ++l) {
        const int low = block.ql[half * 64 + j % 2 * 32 + l] >> (j / 2 * 4) & 15;
        out[half * 128 + j * 32 + l] =
            static_cast<uint8_t>(low | (block.qh[half * 32 + l] >> (2 * j) & 3) << 4);
      }
}

inline void codes_of(const BlockIQ4_NL& block, uint8_t* out) {
  for (int i = 0; i < 16; ++i) out[i] = block.qs[i] & 15, out[i + 16] = block.qs[i] >> 4;
}
inline void codes_of(const BlockMXFP4& block, uint8_t* out) {
  for (int i = 0; i < 16; ++i) out[i] = block.qs[i] & 15, out[i + 16] = block.qs[i] >> 4;
}
inline void codes_of(const BlockNVFP4& block, uint8_t* out) {
  for (int i = 0; i < 64; ++i) out[i] = block.qs[8 * (i / 16) + i % 8] >> (i % 16 / 8 * 4) & 15;
}

// Trit `k` (0 first) of a byte that holds the fraction t0/3 + t1/9 + ... of 256, rounded up.
inline uint8_t trit(uint8_t byte, int k) {
  constexpr uint8_t kPowers[5] = {1, 3, 9, 27, 81};
  return static_cast<uint8_t>(static_cast<uint8_t>(byte * kPowers[k]) * 3 >> 8);
}
// Elements 0 to 159 lie in bytes 0 to 31 of qs, 160 to 239 in the other 16, the last 16 in qh.
inline void codes_of(const BlockTQ1_0& block, uint8_t* out) {
  for (int i = 0; i < 160; ++i) out[i] = trit(block.qs[i % 32], i / 32);
  for (int i = 0; i < 80; ++i) out[160 + i] = trit(block.qs[32 + i % 16], i / 16);
  for (int i = 0; i < 16; ++i) out[240 + i] = trit(block.qh[i % 4], i / 4);
}
inline void codes_of(const BlockTQ2_0& block, uint8_t* out) {
  for (int i = 0; i < kSuperBlock; ++i) out[i] = static_cast<uint8_t>(two_bits(block.qs, i));
}
// 0 and 2, for d * (code - 1).
inline void codes_of(const BlockQ1_0& block, uint8_t* out) {
  for (int i = 0; i < 128; ++i) out[i] = static_cast<uint8_t>((block.qs[i / 8] >> (i % 8) & 1) * 2);
}
inline void codes_of(const BlockQ2_0& block, uint8_t* out) {
  for (int i = 0; i < 64; ++i) out[i] = block.qs[i / 4] >> (2 * (i % 4)) & 3;
}

}  // namespace tercet::quant
