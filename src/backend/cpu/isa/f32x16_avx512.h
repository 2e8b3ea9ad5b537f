// F32x16: sixteen float32 lanes in one AVX-512 register, with the operations that base/vec_math.h and the row
// kernels ask for. Included only by files compiled for AVX-512 F, BW, DQ and VL, or with
// TERCET_EMULATE_AVX512.
#pragma once

#include <cstdint>

#include "backend/cpu/isa/avx512_intrinsics.h"

namespace tercet::backend {
namespace TERCET_ISA {

using Mask16 = __mmask16;

struct F32x16 {
  static constexpr bool kManyRegisters = true;  // 32 vectors fit
  __m512 v;

  static F32x16 all(float value) { return {_mm512_set1_ps(value)}; }
  static F32x16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static F32x16 load_f16(const uint16_t* p) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
  }
  static F32x16 load_bf16(const uint16_t* p) {
    const __m512i words = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(words, 16))};
  }
  // FP8 as base/float8.h reads it.
  static F32x16 load_e5m2(const uint8_t* p) {
    const __m256i words = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return {_mm512_cvtph_ps(_mm256_slli_epi16(words, 8))};
  }
  static F32x16 load_e4m3(const uint8_t* p) {
    const __m256i words = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    const __m256i magnitude = _mm256_and_si256(_mm256_slli_epi16(words, 7), _mm256_set1_epi16(0x3F80));
    const __m256i sign = _mm256_and_si256(words, _mm256_set1_epi16(static_cast<int16_t>(0x8000)));
    return {_mm512_mul_ps(_mm512_cvtph_ps(_mm256_or_si256(magnitude, sign)), _mm512_set1_ps(256.0f))};
  }
  static F32x16 load_i8(const int8_t* p) {
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
  }
  // The low (high) halves of sixteen pairs of bfloat16.
  static F32x16 load_bf16_low(const uint32_t* p) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(p), 16))};
  }
  static F32x16 load_bf16_high(const uint32_t* p) {
    const __m512i high = _mm512_set1_epi32(static_cast<int32_t>(0xFFFF0000));
    return {_mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(p), high))};
  }
  // Lanes from `count` on are zero; memory past p[count] is not read.
  static F32x16 load_partial(const float* p, int count) { return {_mm512_maskz_loadu_ps(first(count), p)}; }
  void store(float* p) const { _mm512_storeu_ps(p, v); }
  void store_partial(float* p, int count) const { _mm512_mask_storeu_ps(p, first(count), v); }
  // Lanes below `count`.
  static Mask16 first(int count) {
    return count >= 16 ? Mask16{0xFFFF} : count <= 0 ? Mask16{0} : static_cast<Mask16>((1u << count) - 1);
  }
  // Sum of 16 int8.
  static int sum_i8(const int8_t* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i unsigned_bytes = _mm_xor_si128(bytes, _mm_set1_epi8(static_cast<char>(0x80)));
    const __m128i halves = _mm_sad_epu8(unsigned_bytes, _mm_setzero_si128());
    return _mm_cvtsi128_si32(halves) + _mm_extract_epi16(halves, 4) - 16 * 128;
  }
};

inline F32x16 operator+(F32x16 x, F32x16 y) { return {_mm512_add_ps(x.v, y.v)}; }
inline F32x16 operator-(F32x16 x, F32x16 y) { return {_mm512_sub_ps(x.v, y.v)}; }
inline F32x16 operator*(F32x16 x, F32x16 y) { return {_mm512_mul_ps(x.v, y.v)}; }
inline F32x16 operator/(F32x16 x, F32x16 y) { return {_mm512_div_ps(x.v, y.v)}; }
inline F32x16 fma(F32x16 x, F32x16 y, F32x16 z) { return {_mm512_fmadd_ps(x.v, y.v, z.v)}; }
inline F32x16 min(F32x16 x, F32x16 y) { return {_mm512_min_ps(x.v, y.v)}; }
inline F32x16 max(F32x16 x, F32x16 y) { return {_mm512_max_ps(x.v, y.v)}; }
inline Mask16 less(F32x16 x, F32x16 y) { return _mm512_cmp_ps_mask(x.v, y.v, _CMP_LT_OQ); }
inline F32x16 select(Mask16 m, F32x16 x, F32x16 y) { return {_mm512_mask_blend_ps(m, y.v, x.v)}; }
inline F32x16 abs(F32x16 x) { return {_mm512_abs_ps(x.v)}; }
inline F32x16 pow2i(F32x16 n) {
  const __m512i exponent = _mm512_add_epi32(_mm512_cvttps_epi32(n.v), _mm512_set1_epi32(127));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(exponent, 23))};
}

inline __m256 upper_half(__m512 v) { return _mm512_extractf32x8_ps(v, 1); }

// ((l0+l8)+(l4+l12)) + ... : halves are added, 16 to 8 to 4 to 2 to 1.
inline float tree_sum(F32x16 x) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(x.v), upper_half(x.v));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
// The largest lane; the result is exact, so the order is free.
inline float max_lane(F32x16 x) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(x.v), upper_half(x.v));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
// Rounds to half, ties to even.
inline void store_f16(uint16_t* p, F32x16 x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(x.v, _MM_FROUND_TO_NEAREST_INT));
}
// Rounds to the nearest integer, ties to even, and stores int8; |x| <= 127.
inline void store_i8(int8_t* p, F32x16 x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x.v)));
}
}  // namespace TERCET_ISA
}  // namespace tercet::backend
