// Half-precision and bfloat16 conversions in integer arithmetic: exact, independent of the floating-point
// control register (DAZ, FTZ, rounding mode). To 16 bits they round half to even; a NaN keeps its sign and
// top payload bits and becomes quiet, as the F16C instructions do.
#pragma once

#include <bit>
#include <cstdint>

namespace tercet {

inline float f16_to_f32(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0x1f) {
    const uint32_t quiet = mantissa != 0 ? 0x400000u : 0;
    return std::bit_cast<float>(sign | 0x7f800000u | quiet | mantissa << 13);
  }
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  if (mantissa == 0) return std::bit_cast<float>(sign);
  const auto shift =
      static_cast<uint32_t>(std::countl_zero(mantissa)) - 21;  // brings the leading one to bit 10
  mantissa = mantissa << shift & 0x3ffu;
  return std::bit_cast<float>(sign | (113 - shift) << 23 | mantissa << 13);
}

inline uint16_t f32_to_f16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // 65520 and above round to infinity
  if (magnitude >= 0x38800000u) {                       // 2^-14: a normal half
    const uint32_t odd = magnitude >> 13 & 1;
    return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
  }
  if (magnitude <= 0x33000000u) return sign;  // 2^-25 and below round to zero
  const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  const uint32_t shift = 126 - (magnitude >> 23);  // 14 to 24 bits fall away
  const uint32_t odd = mantissa >> shift & 1;
  return static_cast<uint16_t>(sign | ((mantissa + (1u << (shift - 1)) - 1 + odd) >> shift));
}

inline float bf16_to_f32(uint16_t half) { return std::bit_cast<float>(static_cast<uint32_t>(half) << 16); }

inline uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

}  // namespace tercet
