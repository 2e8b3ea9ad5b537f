// exp, tanh, sigmoid and the gated activations: one definition for every instruction set.
//
// Each is a template over a vector type V of float32 lanes that provides, as functions found by
// argument-dependent lookup or as operators: + - * /, V::all(float), fma(a, b, c) = a * b + c rounded once,
// min(a, b) = a < b ? a : b, max(a, b) = a > b ? a : b, less(a, b) (a mask), select(mask, a, b) = mask ? a :
// b, abs(a), pow2i(n) = 2^n for integral n in
// [-126, 127]. Every operation is exact or correctly rounded, so the same input gives the same bits
// everywhere. ScalarF32 is V for plain code.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace tercet {

struct ScalarF32 {
  float v;
  static ScalarF32 all(float value) { return {value}; }
};
inline ScalarF32 operator+(ScalarF32 a, ScalarF32 b) { return {a.v + b.v}; }
inline ScalarF32 operator-(ScalarF32 a, ScalarF32 b) { return {a.v - b.v}; }
inline ScalarF32 operator*(ScalarF32 a, ScalarF32 b) { return {a.v * b.v}; }
inline ScalarF32 operator/(ScalarF32 a, ScalarF32 b) { return {a.v / b.v}; }
inline ScalarF32 fma(ScalarF32 a, ScalarF32 b, ScalarF32 c) { return {std::fma(a.v, b.v, c.v)}; }
inline ScalarF32 min(ScalarF32 a, ScalarF32 b) { return a.v < b.v ? a : b; }
inline ScalarF32 max(ScalarF32 a, ScalarF32 b) { return a.v > b.v ? a : b; }
inline bool less(ScalarF32 a, ScalarF32 b) { return a.v < b.v; }
inline ScalarF32 select(bool mask, ScalarF32 a, ScalarF32 b) { return mask ? a : b; }
inline ScalarF32 abs(ScalarF32 a) {
  return {std::bit_cast<float>(std::bit_cast<uint32_t>(a.v) & 0x7fffffffu)};
}
inline ScalarF32 pow2i(ScalarF32 n) {
  return {std::bit_cast<float>(static_cast<uint32_t>(static_cast<int32_t>(n.v) + 127) << 23)};
}

// Inlined always: a vector may be two registers, and those go to a function and back through memory.
namespace vec {

// e^x. Relative error below 2 ulp; 0 below -87.33 (where the result would be subnormal), 2.4e38 above 88.37.
// Cody-Waite reduction by ln 2 in two parts and the degree-5 minimax polynomial of Cephes' expf.
template <class V>
[[gnu::always_inline]] inline V exp(V x) {
  const V lowest = V::all(-87.33654f);
  const V y = min(max(x, lowest), V::all(88.3762626647949f));
  const V magic = V::all(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
  const V n = fma(y, V::all(1.44269504088896341f), magic) - magic;
  V r = fma(n, V::all(-0.693359375f), y);
  r = fma(n, V::all(2.12194440e-4f), r);
  V p = V::all(1.9875691500e-4f);
  p = fma(p, r, V::all(1.3981999507e-3f));
  p = fma(p, r, V::all(8.3334519073e-3f));
  p = fma(p, r, V::all(4.1665795894e-2f));
  p = fma(p, r, V::all(1.6666665459e-1f));
  p = fma(p, r, V::all(5.0000001201e-1f));
  p = fma(p * r, r, r) + V::all(1.0f);
  return select(less(x, lowest), V::all(0.0f), p * pow2i(n));
}

// 1 / (1 + e^-x).
template <class V>
[[gnu::always_inline]] inline V sigmoid(V x) {
  const V one = V::all(1.0f);
  return one / (one + exp(V::all(0.0f) - x));
}

// Below 0.625 the odd polynomial of Cephes' tanhf, above it 1 - 2 / (1 + e^2|x|) with the sign of x.
template <class V>
[[gnu::always_inline]] inline V tanh(V x) {
  const V a = abs(x);
  const V one = V::all(1.0f);
  const V far = one - V::all(2.0f) / (one + exp(a + a));
  const V s = x * x;
  V p = V::all(-5.70498872745e-3f);
  p = fma(p, s, V::all(2.06390887954e-2f));
  p = fma(p, s, V::all(-5.37397155531e-2f));
  p = fma(p, s, V::all(1.33314422036e-1f));
  p = fma(p, s, V::all(-3.33332819422e-1f));
  const V near = fma(p * s, x, x);
  const V signed_far = select(less(x, V::all(0.0f)), V::all(0.0f) - far, far);
  return select(less(a, V::all(0.625f)), near, signed_far);
}

// x * sigmoid(x), Hendrycks and Gimpel 2016 (swish with beta 1).
template <class V>
[[gnu::always_inline]] inline V silu(V x) {
  return x * sigmoid(x);
}

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), the tanh form of GELU.
template <class V>
[[gnu::always_inline]] inline V gelu_tanh(V x) {
  const V inner = V::all(0.79788456080286535588f) * fma(V::all(0.044715f) * x * x, x, x);
  return V::all(0.5f) * x * (V::all(1.0f) + tanh(inner));
}

}  // namespace vec
}  // namespace tercet
