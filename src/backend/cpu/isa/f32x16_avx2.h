// F32x16: sixteen float32 lanes in two AVX2 registers, with the operations that base/vec_math.h and the row
// kernels ask for. Included only by files compiled for AVX2, FMA and F16C.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace tercet::backend {
namespace TERCET_ISA {

struct Mask16 {
  __m256 a, b;
};

struct F32x16 {
  static constexpr bool kManyRegisters = false;  // 32 vectors do not fit
  __m256 a, b;

  static F32x16 all(float value) { return {_mm256_set1_ps(value), _mm256_set1_ps(value)}; }
  static F32x16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static F32x16 load_f16(const uint16_t* p) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
            _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
  }
  static F32x16 load_bf16(const uint16_t* p) {
    const auto eight = [](const uint16_t* q) {
      const __m256i words = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(q)));
      return _mm256_castsi256_ps(_mm256_slli_epi32(words, 16));
    };
    return {eight(p), eight(p + 8)};
  }
  // FP8 as base/float8.h reads it.
  static F32x16 load_e5m2(const uint8_t* p) {
    const __m256i words = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return from_halves(_mm256_slli_epi16(words, 8));
  }
  static F32x16 load_e4m3(const uint8_t* p) {
    const __m256i words = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    const __m256i magnitude = _mm256_and_si256(_mm256_slli_epi16(words, 7), _mm256_set1_epi16(0x3F80));
    const __m256i sign = _mm256_and_si256(words, _mm256_set1_epi16(static_cast<int16_t>(0x8000)));
    const F32x16 x = from_halves(_mm256_or_si256(magnitude, sign));
    const __m256 factor = _mm256_set1_ps(256.0f);
    return {_mm256_mul_ps(x.a, factor), _mm256_mul_ps(x.b, factor)};
  }
  static F32x16 load_i8(const int8_t* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(bytes, bytes)))};
  }
  // The low (high) halves of sixteen pairs of bfloat16.
  static F32x16 load_bf16_low(const uint32_t* p) {
    const auto* pairs = reinterpret_cast<const __m256i*>(p);
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_loadu_si256(pairs), 16)),
            _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_loadu_si256(pairs + 1), 16))};
  }
  static F32x16 load_bf16_high(const uint32_t* p) {
    const auto* pairs = reinterpret_cast<const __m256i*>(p);
    const __m256i high = _mm256_set1_epi32(static_cast<int32_t>(0xFFFF0000));
    return {_mm256_castsi256_ps(_mm256_and_si256(_mm256_loadu_si256(pairs), high)),
            _mm256_castsi256_ps(_mm256_and_si256(_mm256_loadu_si256(pairs + 1), high))};
  }
  // Lanes from `count` on are zero; memory past p[count] is not read.
  static F32x16 load_partial(const float* p, int count) {
    return {_mm256_maskload_ps(p, lanes_below(count)), _mm256_maskload_ps(p + 8, lanes_below(count - 8))};
  }
  void store(float* p) const {
    _mm256_storeu_ps(p, a);
    _mm256_storeu_ps(p + 8, b);
  }
  void store_partial(float* p, int count) const {
    _mm256_maskstore_ps(p, lanes_below(count), a);
    _mm256_maskstore_ps(p + 8, lanes_below(count - 8), b);
  }
  // Lanes below `count`.
  static Mask16 first(int count) {
    return {_mm256_castsi256_ps(lanes_below(count)), _mm256_castsi256_ps(lanes_below(count - 8))};
  }

  // Sum of 16 int8.
  static int sum_i8(const int8_t* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i unsigned_bytes = _mm_xor_si128(bytes, _mm_set1_epi8(static_cast<char>(0x80)));
    const __m128i halves = _mm_sad_epu8(unsigned_bytes, _mm_setzero_si128());
    return _mm_cvtsi128_si32(halves) + _mm_extract_epi16(halves, 4) - 16 * 128;
  }

 private:
  static F32x16 from_halves(__m256i halves) {
    return {_mm256_cvtph_ps(_mm256_castsi256_si128(halves)),
            _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1))};
  }
  static __m256i lanes_below(int count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
};

inline F32x16 operator+(F32x16 x, F32x16 y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
inline F32x16 operator-(F32x16 x, F32x16 y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
inline F32x16 operator*(F32x16 x, F32x16 y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
inline F32x16 operator/(F32x16 x, F32x16 y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
inline F32x16 fma(F32x16 x, F32x16 y, F32x16 z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
inline F32x16 min(F32x16 x, F32x16 y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
inline F32x16 max(F32x16 x, F32x16 y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
inline Mask16 less(F32x16 x, F32x16 y) {
  return {_mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ)};
}
inline F32x16 select(Mask16 m, F32x16 x, F32x16 y) {
  return {_mm256_blendv_ps(y.a, x.a, m.a), _mm256_blendv_ps(y.b, x.b, m.b)};
}
inline F32x16 abs(F32x16 x) {
  const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  return {_mm256_and_ps(x.a, mask), _mm256_and_ps(x.b, mask)};
}
inline __m256 pow2i(__m256 n) {
  return _mm256_castsi256_ps(
      _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvttps_epi32(n), _mm256_set1_epi32(127)), 23));
}
inline F32x16 pow2i(F32x16 n) { return {pow2i(n.a), pow2i(n.b)}; }

// ((l0+l8)+(l4+l12)) + ... : halves are added, 16 to 8 to 4 to 2 to 1.
inline float tree_sum(F32x16 x) {
  const __m256 eight = _mm256_add_ps(x.a, x.b);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
// The largest lane; the result is exact, so the order is free.
inline float max_lane(F32x16 x) {
  const __m256 eight = _mm256_max_ps(x.a, x.b);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
// Rounds to half, ties to even.
inline void store_f16(uint16_t* p, F32x16 x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x.a, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(x.b, _MM_FROUND_TO_NEAREST_INT));
}
// Rounds to the nearest integer, ties to even, and stores int8; |x| <= 127.
inline void store_i8(int8_t* p, F32x16 x) {
  const __m256i words = _mm256_packs_epi32(_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b));
  const __m256i ordered = _mm256_permute4x64_epi64(words, 0xD8);
  const __m128i bytes =
      _mm_packs_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
}
}  // namespace TERCET_ISA
}  // namespace tercet::backend
