// The AVX-512 intrinsics that f32x16_avx512.h and int_ops_avx512.h use, for a processor with AVX2, FMA and
// F16C only. Most are SIMDe's: its headers name them as macros, so those headers compile unchanged. Those
// that SIMDe 0.7 lacks or computes differently are functions below; in namespace TERCET_ISA they hide the
// compiler's own. Each does what the Intel Intrinsics Guide says of its name. Included only through
// isa/avx512_intrinsics.h.
#pragma once

#include <immintrin.h>

#include <cstdint>

#define SIMDE_NO_INLINE  // inlined into the unrolled kernels, they take minutes to compile
#define SIMDE_X86_AVX512F_ENABLE_NATIVE_ALIASES
#define SIMDE_X86_AVX512BW_ENABLE_NATIVE_ALIASES
#define SIMDE_X86_AVX512VNNI_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512/abs.h>
#include <simde/x86/avx512/add.h>
#include <simde/x86/avx512/and.h>
#include <simde/x86/avx512/andnot.h>
#include <simde/x86/avx512/blend.h>
#include <simde/x86/avx512/cast.h>
#include <simde/x86/avx512/cmp.h>
#include <simde/x86/avx512/cvt.h>
#include <simde/x86/avx512/div.h>
#include <simde/x86/avx512/dpbusd.h>
#include <simde/x86/avx512/dpwssd.h>
#include <simde/x86/avx512/loadu.h>
#include <simde/x86/avx512/maddubs.h>
#include <simde/x86/avx512/max.h>
#include <simde/x86/avx512/min.h>
#include <simde/x86/avx512/mov_mask.h>
#include <simde/x86/avx512/mul.h>
#include <simde/x86/avx512/mullo.h>
#include <simde/x86/avx512/or.h>
#include <simde/x86/avx512/set1.h>
#include <simde/x86/avx512/setzero.h>
#include <simde/x86/avx512/shuffle.h>
#include <simde/x86/avx512/slli.h>
#include <simde/x86/avx512/srli.h>
#include <simde/x86/avx512/storeu.h>
#include <simde/x86/avx512/sub.h>
#include <simde/x86/avx512/xor.h>

#include "base/check.h"

#define __m512 simde__m512
#define __m512i simde__m512i
// Names that are macros, of SIMDe or of a compiler that wants its immediates so.
#undef _mm512_abs_ps
#undef _mm512_cvtps_ph
#undef _mm512_extractf32x8_ps
#undef _mm512_fmadd_ps
#undef _mm512_fmsub_ps
#undef _mm512_madd_epi16
#undef _mm512_srai_epi16
#undef _mm512_srai_epi32

namespace tercet::backend {
namespace TERCET_ISA {

// The register whose 256-bit half i is half(i).
template <class Half>
inline __m512 float_halves(const Half& half) {
  simde__m512_private r;
  for (int i = 0; i < 2; ++i) r.m256[i] = half(i);
  return simde__m512_from_private(r);
}
template <class Half>
inline __m512i int_halves(const Half& half) {
  simde__m512i_private r;
  for (int i = 0; i < 2; ++i) r.m256i[i] = half(i);
  return simde__m512i_from_private(r);
}
inline __m256 half_of(__m512 v, int i) { return simde__m512_to_private(v).m256[i]; }
inline __m256i half_of(__m512i v, int i) { return simde__m512i_to_private(v).m256i[i]; }
inline __m128i half_of(__m256i v, int i) { return simde__m256i_to_private(v).m128i[i]; }

// SIMDe's leaves -0 as it is.
inline __m512 _mm512_abs_ps(__m512 a) {
  return float_halves([&](int i) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), half_of(a, i)); });
}
// Rounded once, which SIMDe promises nowhere.
inline __m512 _mm512_fmadd_ps(__m512 a, __m512 b, __m512 c) {
  return float_halves([&](int i) { return _mm256_fmadd_ps(half_of(a, i), half_of(b, i), half_of(c, i)); });
}
inline __m512 _mm512_fmsub_ps(__m512 a, __m512 b, __m512 c) {
  return float_halves([&](int i) { return _mm256_fmsub_ps(half_of(a, i), half_of(b, i), half_of(c, i)); });
}
inline __m256 _mm512_extractf32x8_ps(__m512 a, int imm8) { return half_of(a, imm8 & 1); }

// Memory of lanes that the mask leaves out is not touched.
inline __m512 _mm512_maskz_loadu_ps(__mmask16 k, const void* p) {
  simde__m512_private r = simde__m512_to_private(_mm512_set1_ps(0));
  for (int i = 0; i < 16; ++i)
    if (k >> i & 1) r.f32[i] = static_cast<const float*>(p)[i];
  return simde__m512_from_private(r);
}
inline void _mm512_mask_storeu_ps(void* p, __mmask16 k, __m512 a) {
  const simde__m512_private lanes = simde__m512_to_private(a);
  for (int i = 0; i < 16; ++i)
    if (k >> i & 1) static_cast<float*>(p)[i] = lanes.f32[i];
}

inline __m512 _mm512_cvtph_ps(__m256i a) {
  return float_halves([&](int i) { return _mm256_cvtph_ps(half_of(a, i)); });
}
// To the nearest, ties to even: the one rounding that the kernels ask for.
inline __m256i _mm512_cvtps_ph(__m512 a, int rounding) {
  TERCET_CHECK(rounding == _MM_FROUND_TO_NEAREST_INT);
  return _mm256_set_m128i(_mm256_cvtps_ph(half_of(a, 1), _MM_FROUND_TO_NEAREST_INT),
                          _mm256_cvtps_ph(half_of(a, 0), _MM_FROUND_TO_NEAREST_INT));
}
inline __m512 _mm512_cvtepi32_ps(__m512i a) {
  return float_halves([&](int i) { return _mm256_cvtepi32_ps(half_of(a, i)); });
}
inline __m512i _mm512_cvtps_epi32(__m512 a) {
  return int_halves([&](int i) { return _mm256_cvtps_epi32(half_of(a, i)); });
}
inline __m512i _mm512_cvttps_epi32(__m512 a) {
  return int_halves([&](int i) { return _mm256_cvttps_epi32(half_of(a, i)); });
}
inline __m512i _mm512_cvtepu8_epi16(__m256i a) {
  return int_halves([&](int i) { return _mm256_cvtepu8_epi16(half_of(a, i)); });
}
inline __m512i _mm512_cvtepu16_epi32(__m256i a) {
  return int_halves([&](int i) { return _mm256_cvtepu16_epi32(half_of(a, i)); });
}
inline __m512i _mm512_cvtepi8_epi32(__m128i a) {
  return int_halves([&](int i) { return _mm256_cvtepi8_epi32(i == 0 ? a : _mm_unpackhi_epi64(a, a)); });
}
inline __m512i _mm512_cvtepu8_epi32(__m128i a) {
  return int_halves([&](int i) { return _mm256_cvtepu8_epi32(i == 0 ? a : _mm_unpackhi_epi64(a, a)); });
}
// The low byte of each lane.
inline __m128i _mm512_cvtepi32_epi8(__m512i a) {
  const simde__m512i_private lanes = simde__m512i_to_private(a);
  simde__m128i_private r;
  for (int i = 0; i < 16; ++i) r.i8[i] = static_cast<int8_t>(lanes.i32[i]);
  return simde__m128i_from_private(r);
}

// The low half of each lane.
inline __m256i _mm512_cvtepi32_epi16(__m512i a) {
  const simde__m512i_private lanes = simde__m512i_to_private(a);
  simde__m256i_private r;
  for (int i = 0; i < 16; ++i) r.i16[i] = static_cast<int16_t>(lanes.i32[i]);
  return simde__m256i_from_private(r);
}

inline __m512i _mm512_srai_epi32(__m512i a, unsigned imm8) {
  return int_halves([&](int i) { return _mm256_srai_epi32(half_of(a, i), static_cast<int>(imm8)); });
}
inline __m512i _mm512_srai_epi16(__m512i a, unsigned imm8) {
  return int_halves([&](int i) { return _mm256_srai_epi16(half_of(a, i), static_cast<int>(imm8)); });
}
inline __m512i _mm512_broadcast_i32x4(__m128i a) {
  return int_halves([&](int) { return _mm256_broadcastsi128_si256(a); });
}
inline __m512i _mm512_madd_epi16(__m512i a, __m512i b) {
  return int_halves([&](int i) { return _mm256_madd_epi16(half_of(a, i), half_of(b, i)); });
}

}  // namespace TERCET_ISA
}  // namespace tercet::backend
