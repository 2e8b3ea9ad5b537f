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
  using Plain = IntOps;
  static constexpr int kRows = 8;
  static constexpr bool kVnni = false;
  static constexpr bool kFastMul32 = false;
  // How linear_packed.h blocks: tiles for few rows, up to how many those are, up to how many rows times
  // vectors of outputs a tile has (if it can), and the block of them that many rows keep in registers.
  static constexpr int kFewTiles[] = {1, 2, 3, 4, 5, 6};
  static constexpr int kFewRows = 8;
  static constexpr int kFewAccumulators = 8;
  static constexpr int kManyRows = 4, kManyVectors = 2;

  static I zero() { return _mm256_setzero_si256(); }
  static I load(const std::byte* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static void store(std::byte* p, I v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
  // Of any address: one that is not mapped is ignored. In assembly because GCC 12 drops loops of intrinsics
  // that do nothing else.
  static void prefetch_near(const std::byte* p) { asm volatile("prefetcht0 %0" : : "m"(*p)); }
  static void prefetch_far(const std::byte* p) { asm volatile("prefetcht1 %0" : : "m"(*p)); }

  template <int mask>
  static I and_bytes(I v) {
    return _mm256_and_si256(v, _mm256_set1_epi8(mask));
  }
  template <int mask>
  static I and_words(I v) {
    return _mm256_and_si256(v, _mm256_set1_epi16(mask));
  }
  static I or_bits(I a, I b) { return _mm256_or_si256(a, b); }
  // Bits that cross a byte are masked by the caller.
  static I shift_right16(I v, int bits) { return _mm256_srli_epi16(v, bits); }
  static I shift_left16(I v, int bits) { return _mm256_slli_epi16(v, bits); }
  static I shift_right16_signed(I v, int bits) { return _mm256_srai_epi16(v, bits); }
  static I shift_right32(I v, int bits) { return _mm256_srli_epi32(v, bits); }
  static I shift_left32(I v, int bits) { return _mm256_slli_epi32(v, bits); }
  static I shift_right32_signed(I v, int bits) { return _mm256_srai_epi32(v, bits); }
  static I flip_sign_bits(I bytes) {
    return _mm256_xor_si256(bytes, _mm256_set1_epi8(static_cast<char>(0x80)));
  }
  // Sixteen bytes in every 128 bits; and those that each index (0 to 15) names.
  static I repeat16(const int8_t* p) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static I lookup(I table, I indices) { return _mm256_shuffle_epi8(table, indices); }

  // The same four bytes in every group.
  static I broadcast4(const void* p) {
    int32_t four;
    std::memcpy(&four, p, 4);
    return _mm256_set1_epi32(four);
  }
  static I all8(int v) { return _mm256_set1_epi8(static_cast<char>(v)); }
  static I all16(int v) { return _mm256_set1_epi16(static_cast<int16_t>(v)); }
  static I all32(int v) { return _mm256_set1_epi32(v); }

  // Products of unsigned codes and signed activations, neighbours added: 16-bit lanes.
  static I products(I codes, I a) { return _mm256_maddubs_epi16(codes, a); }
  static I products_signed(I codes, I a) {
    return _mm256_maddubs_epi16(_mm256_abs_epi8(codes), _mm256_sign_epi8(a, codes));
  }
  static I add8(I a, I b) { return _mm256_add_epi8(a, b); }
  static I add16(I a, I b) { return _mm256_add_epi16(a, b); }
  static I sub16(I a, I b) { return _mm256_sub_epi16(a, b); }
  static I madd16(I a, I b) { return _mm256_madd_epi16(a, b); }
  static I madd_add(I acc, I a, I b) { return _mm256_add_epi32(acc, _mm256_madd_epi16(a, b)); }
  static I add32(I a, I b) { return _mm256_add_epi32(a, b); }
  // The low 16 bits of each 32-bit lane in both halves.
  static I twice(I v) {
    return _mm256_shuffle_epi8(v, _mm256_setr_epi8(0, 1, 0, 1, 4, 5, 4, 5, 8, 9, 8, 9, 12, 13, 12, 13, 0, 1,
                                                   0, 1, 4, 5, 4, 5, 8, 9, 8, 9, 12, 13, 12, 13));
  }

  static F load_f32(const float* p) { return _mm256_loadu_ps(p); }
  static void store_f32(float* p, F v) { _mm256_storeu_ps(p, v); }
  static F load_f16(const std::byte* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  // Half of 2^(e - 127) for each byte e; 0 where that is subnormal, as the control register has it.
  static F load_half_e8m0(const std::byte* p) {
    const I e = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
    const I one = _mm256_set1_epi32(1);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_sub_epi32(_mm256_max_epi32(e, one), one), 23));
  }
  static F all(float v) { return _mm256_set1_ps(v); }
  static F to_float(I v) { return _mm256_cvtepi32_ps(v); }
  static F add(F a, F b) { return _mm256_add_ps(a, b); }
  static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static F fmsub(F a, F b, F c) { return _mm256_fmsub_ps(a, b, c); }
};

#if defined(__AVXVNNI__) || defined(TERCET_EMULATE_AVXVNNI)
// AVX-VNNI adds the byte dot product.
struct VnniOps : IntOps {
  using Plain = VnniOps;
  static constexpr bool kVnni = true;
  static constexpr int kManyRows = 6, kManyVectors = 1;
  // acc + the four products of unsigned codes and signed activations, per 32-bit lane.
#ifdef TERCET_EMULATE_AVXVNNI
  static I dot4(I acc, I codes, I a) {
    const I even = _mm256_madd_epi16(and_words<0xFF>(codes), shift_right16_signed(shift_left16(a, 8), 8));
    const I odd = _mm256_madd_epi16(shift_right16(codes, 8), shift_right16_signed(a, 8));
    return add32(acc, add32(even, odd));
  }
#else
  static I dot4(I acc, I codes, I a) { return _mm256_dpbusd_avx_epi32(acc, codes, a); }
#endif
  static I mul32(I a, I b) { return _mm256_mullo_epi32(a, b); }
};
#endif

}  // namespace TERCET_ISA
}  // namespace tercet::backend
