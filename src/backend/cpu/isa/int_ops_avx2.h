// Integer operations of AVX2 for linear_packed.h: a register holds 8 groups of four bytes.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tercet::backend {
namespace TERCET_ISA {

struct IntOps {
  using I = __m256i;
  using F = __m256;
  static constexpr int kRows = 8;
  static constexpr bool kVnni = false;

  static I zero() { return _mm256_setzero_si256(); }
  static I load(const std::byte* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static void store(std::byte* p, I v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
  // Of any address: one that is not mapped is ignored.
  static void prefetch_near(const std::byte* p) {
    _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0);
  }
  static void prefetch_far(const std::byte* p) {
    _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
  }

  template <int mask>
  static I and_bytes(I v) {
    return _mm256_and_si256(v, _mm256_set1_epi8(mask));
  }
  template <int mask>
  static I and_words(I v) {
    return _mm256_and_si256(v, _mm256_set1_epi16(mask));
  }
  static I or_bits(I a, I b) { return _mm256_or_si256(a, b); }
  // 16-bit shifts; bits that cross a byte are masked by the caller.
  static I shift_right(I v, int bits) { return _mm256_srli_epi16(v, bits); }
  static I shift_left(I v, int bits) { return _mm256_slli_epi16(v, bits); }

  // The same four bytes in every group.
  static I broadcast4(const void* p) {
    int32_t four;
    std::memcpy(&four, p, 4);
    return _mm256_set1_epi32(four);
  }
  static I all16(int v) { return _mm256_set1_epi16(static_cast<int16_t>(v)); }
  static I all32(int v) { return _mm256_set1_epi32(v); }

  // Products of unsigned codes and signed activations, neighbours added: 16-bit lanes.
  static I products(I codes, I a) { return _mm256_maddubs_epi16(codes, a); }
  static I products_signed(I codes, I a) {
    return _mm256_maddubs_epi16(_mm256_abs_epi8(codes), _mm256_sign_epi8(a, codes));
  }
  static I add16(I a, I b) { return _mm256_add_epi16(a, b); }
  static I madd16(I a, I b) { return _mm256_madd_epi16(a, b); }
  static I add32(I a, I b) { return _mm256_add_epi32(a, b); }
  static I sub32(I a, I b) { return _mm256_sub_epi32(a, b); }
  static I multiply_power_of_two(I v, int factor) { return _mm256_slli_epi32(v, __builtin_ctz(factor)); }

  // 2 * kRows bytes to 16-bit lanes.
  static I widen_i8(const std::byte* p) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static I widen_u8(const std::byte* p) {
    return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  // The even (odd) 16-bit lane of each pair in both.
  static I dup_even(I v) {
    return _mm256_shuffle_epi8(v, _mm256_setr_epi8(0, 1, 0, 1, 4, 5, 4, 5, 8, 9, 8, 9, 12, 13, 12, 13, 0, 1,
                                                   0, 1, 4, 5, 4, 5, 8, 9, 8, 9, 12, 13, 12, 13));
  }
  static I dup_odd(I v) {
    return _mm256_shuffle_epi8(v, _mm256_setr_epi8(2, 3, 2, 3, 6, 7, 6, 7, 10, 11, 10, 11, 14, 15, 14, 15, 2,
                                                   3, 2, 3, 6, 7, 6, 7, 10, 11, 10, 11, 14, 15, 14, 15));
  }

  static F load_f32(const float* p) { return _mm256_loadu_ps(p); }
  static void store_f32(float* p, F v) { _mm256_storeu_ps(p, v); }
  static F load_f16(const std::byte* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static F all(float v) { return _mm256_set1_ps(v); }
  static F to_float(I v) { return _mm256_cvtepi32_ps(v); }
  static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static F fmsub(F a, F b, F c) { return _mm256_fmsub_ps(a, b, c); }
};

}  // namespace TERCET_ISA
}  // namespace tercet::backend
