// Integer operations of AVX-512 (F, BW, DQ, VL) for linear_packed.h: a register holds 16 groups of four
// bytes. `IntOps` needs no VNNI; `VnniOps` adds its byte dot product.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backend/cpu/isa/avx512_intrinsics.h"

namespace tercet::backend {
namespace TERCET_ISA {

struct IntOps {
  using I = __m512i;
  using F = __m512;
  using Plain = IntOps;  // what the kernels are compiled for that kFastMul32 does not change
  static constexpr int kRows = 16;
  static constexpr bool kVnni = false;
  static constexpr bool kFastMul32 = false;
  // How linear_packed.h blocks: tiles for few rows, up to how many those are, up to how many rows times
  // vectors of outputs a tile has (if it can), and the block of them that many rows keep in registers.
  static constexpr int kFewTiles[] = {1, 2, 3, 4};
  static constexpr int kFewRows = 12;
  static constexpr int kFewAccumulators = 8;
  static constexpr int kManyRows = 6, kManyVectors = 2;

  static I zero() { return _mm512_setzero_si512(); }
  static I load(const std::byte* p) { return _mm512_loadu_si512(p); }
  static void store(std::byte* p, I v) { _mm512_storeu_si512(p, v); }
  // Of any address: one that is not mapped is ignored. In assembly because GCC 12 drops loops of intrinsics
  // that do nothing else.
  static void prefetch_near(const std::byte* p) { asm volatile("prefetcht0 %0" : : "m"(*p)); }
  static void prefetch_far(const std::byte* p) { asm volatile("prefetcht1 %0" : : "m"(*p)); }

  template <int mask>
  static I and_bytes(I v) {
    return _mm512_and_si512(v, _mm512_set1_epi8(mask));
  }
  template <int mask>
  static I and_words(I v) {
    return _mm512_and_si512(v, _mm512_set1_epi16(mask));
  }
  static I or_bits(I a, I b) { return _mm512_or_si512(a, b); }
  // Bits that cross a byte are masked by the caller.
  static I shift_right16(I v, unsigned bits) { return _mm512_srli_epi16(v, bits); }
  static I shift_left16(I v, unsigned bits) { return _mm512_slli_epi16(v, bits); }
  static I shift_right16_signed(I v, unsigned bits) { return _mm512_srai_epi16(v, bits); }
  static I shift_right32(I v, unsigned bits) { return _mm512_srli_epi32(v, bits); }
  static I shift_left32(I v, unsigned bits) { return _mm512_slli_epi32(v, bits); }
  static I shift_right32_signed(I v, unsigned bits) { return _mm512_srai_epi32(v, bits); }
  static I flip_sign_bits(I bytes) {
    return _mm512_xor_si512(bytes, _mm512_set1_epi8(static_cast<char>(0x80)));
  }
  // Sixteen bytes in every 128 bits; and those that each index (0 to 15) names.
  static I repeat16(const int8_t* p) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static I lookup(I table, I indices) { return _mm512_shuffle_epi8(table, indices); }

  // The same four bytes in every group.
  static I broadcast4(const void* p) {
    int32_t four;
    std::memcpy(&four, p, 4);
    return _mm512_set1_epi32(four);
  }
  static I all8(int v) { return _mm512_set1_epi8(static_cast<char>(v)); }
  static I all16(int v) { return _mm512_set1_epi16(static_cast<int16_t>(v)); }
  static I all32(int v) { return _mm512_set1_epi32(v); }

  // Products of unsigned codes and signed activations, neighbours added: 16-bit lanes.
  static I products(I codes, I a) { return _mm512_maddubs_epi16(codes, a); }
  static I products_signed(I codes, I a) {
    const I negated = _mm512_mask_sub_epi8(a, _mm512_movepi8_mask(codes), zero(), a);
    return _mm512_maddubs_epi16(_mm512_abs_epi8(codes), negated);
  }
  // The low 16 bits of the products.
  static I mul16(I a, I b) { return _mm512_mullo_epi16(a, b); }
  static I add8(I a, I b) { return _mm512_add_epi8(a, b); }
  static I add16(I a, I b) { return _mm512_add_epi16(a, b); }
  static I sub16(I a, I b) { return _mm512_sub_epi16(a, b); }
  static I madd16(I a, I b) { return _mm512_madd_epi16(a, b); }
  static I madd_add(I acc, I a, I b) { return _mm512_add_epi32(acc, _mm512_madd_epi16(a, b)); }
  static I add32(I a, I b) { return _mm512_add_epi32(a, b); }
  // The low 16 bits of each 32-bit lane in both halves.
  static I twice(I v) {
    return _mm512_or_si512(_mm512_and_si512(v, _mm512_set1_epi32(0xFFFF)), _mm512_slli_epi32(v, 16));
  }

  static F load_f32(const float* p) { return _mm512_loadu_ps(p); }
  static void store_f32(float* p, F v) { _mm512_storeu_ps(p, v); }
  // 32 values that BF16 holds exactly.
  static void store_bf16(uint16_t* to, const float* from) {
    for (int i = 0; i < 32; i += 16) {
      const I bits = _mm512_srli_epi32(_mm512_castps_si512(load_f32(from + i)), 16);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), _mm512_cvtepi32_epi16(bits));
    }
  }
  static F load_f16(const std::byte* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  // Half of 2^(e - 127) for each byte e; 0 where that is subnormal, as the control register has it.
  static F load_half_e8m0(const std::byte* p) {
    const I e = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    const I one = _mm512_set1_epi32(1);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_sub_epi32(_mm512_max_epi32(e, one), one), 23));
  }
  static F all(float v) { return _mm512_set1_ps(v); }
  static F to_float(I v) { return _mm512_cvtepi32_ps(v); }
  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F fmsub(F a, F b, F c) { return _mm512_fmsub_ps(a, b, c); }
};

#if defined(__AVX512VNNI__) || defined(TERCET_EMULATE_AVX512)
struct VnniOps : IntOps {
  using Plain = VnniOps;
  using WithoutVnni = IntOps;
  static constexpr bool kVnni = true;
  static constexpr int kFewTiles[] = {1, 2, 3, 4, 5, 6, 8};
  static constexpr int kFewRows = 16;
  // acc + the four products of unsigned codes and signed activations, per 32-bit lane.
  // In assembly because GCC 12 copies the accumulators of the intrinsics around, two moves each.
#ifdef TERCET_EMULATE_AVX512
  static I dot4(I acc, I codes, I a) { return _mm512_dpbusd_epi32(acc, codes, a); }
  static I madd_add(I acc, I a, I b) { return _mm512_dpwssd_epi32(acc, a, b); }
#else
  static I dot4(I acc, I codes, I a) {
    asm("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(codes), "v"(a));
    return acc;
  }
  static I madd_add(I acc, I a, I b) {
    asm("vpdpwssd %2, %1, %0" : "+v"(acc) : "v"(a), "v"(b));
    return acc;
  }
#endif
  static I mul32(I a, I b) { return _mm512_mullo_epi32(a, b); }
};

// Where a product of 32 bits takes the multipliers no longer than a byte dot product, as AMD's do (Intel's
// take two turns).
struct FastMulOps : VnniOps {
  static constexpr bool kFastMul32 = true;
};
#endif

}  // namespace TERCET_ISA
}  // namespace tercet::backend
