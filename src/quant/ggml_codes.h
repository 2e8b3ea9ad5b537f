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

inline void codes_of(const BlockQ2_K& block, uint8_t* out) {
  for (int half = 0; half < 2; ++half)
    for (int j = 0; j < 4; ++j)
      for (int l = 0; l < 32; ++l) out[half * 128 + j * 32 + l] = block.qs[half * 32 + l] >> (2 * j) & 3;
}
inline void codes_of(const BlockQ3_K& block, uint8_t* out) {
  for (int half = 0; half < 2; ++half)
    for (int j = 0; j < 4; ++j)
      for (int l = 0; l < 32; ++l)
        out[half * 128 + j * 32 + l] = static_cast<uint8_t>((block.qs[half * 32 + l] >> (2 * j) & 3) |
                                                            (block.hmask[l] >> (half * 4 + j) & 1) << 2);
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

}  // namespace tercet::quant
