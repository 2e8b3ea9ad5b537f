// Eight-bit floats of the OCP FP8 specification: e4m3 (no infinities, largest 448) and e5m2. To eight bits
// they round half to even and saturate; a NaN stays one. Results below the smallest normal float32 do not
// occur.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "base/float16.h"

namespace tercet {

// With the exponent bias of a half, e4m3 is 2^8 too small.
inline float e4m3_to_f32(uint8_t x) {
  if ((x & 0x7F) == 0x7F) return std::bit_cast<float>(0x7FC00000u);
  return f16_to_f32(static_cast<uint16_t>((x & 0x80) << 8 | (x & 0x7F) << 7)) * 256.0f;
}

// The top byte of a half.
inline float e5m2_to_f32(uint8_t x) { return f16_to_f32(static_cast<uint16_t>(x << 8)); }

namespace float8 {

// The low `mantissa_bits` of the result, the exponent above with `bias`; `largest` is finite.
inline uint8_t round(float value, unsigned mantissa_bits, unsigned bias, uint32_t largest) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint8_t>(bits >> 24 & 0x80u);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return sign | 0x7F;
  const uint32_t smallest_normal = (128 - bias) << 23;
  uint32_t code;
  if (magnitude < smallest_normal) {
    // Steps of the subnormals: 2^(1 - bias - mantissa_bits).
    const float step = std::bit_cast<float>((127 + bias - 1 + mantissa_bits) << 23);
    code = static_cast<uint32_t>(std::nearbyint(std::bit_cast<float>(magnitude) * step));
  } else {
    const unsigned dropped = 23 - mantissa_bits;
    const uint32_t rounded = magnitude + (1u << (dropped - 1)) - 1 + (magnitude >> dropped & 1);
    code = (rounded >> dropped) - ((127 - bias) << mantissa_bits);
  }
  return static_cast<uint8_t>(sign | (code < largest ? code : largest));
}

}  // namespace float8

inline uint8_t f32_to_e4m3(float value) { return float8::round(value, 3, 7, 0x7E); }
inline uint8_t f32_to_e5m2(float value) { return float8::round(value, 2, 15, 0x7B); }

}  // namespace tercet
