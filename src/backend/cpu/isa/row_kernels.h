// Norms, activations, rotary embedding and activation quantization for any sixteen-lane vector type V
// (f32x16_*.h): lane j takes elements j, j + 16, ...; a last partial vector leaves the missing lanes alone.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "backend/cpu/gated.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/scalar/scalar_kernels.h"
#include "base/check.h"
#include "base/vec_math.h"

namespace tercet::backend {

// Calls full(i) for each whole vector and rest(i, count) for what is left.
template <class Full, class Rest>
inline void for_vectors(int64_t n, const Full& full, const Rest& rest) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) full(i);
  if (i < n) rest(i, static_cast<int>(n - i));
}

// x[i] = f(x[i], i) for i < n.
template <class V, class F>
inline void transform(float* x, int64_t n, const F& f) {
  for_vectors(
      n, [&](int64_t i) { f(V::load(x + i), i, 16).store(x + i); },
      [&](int64_t i, int count) { f(V::load_partial(x + i, count), i, count).store_partial(x + i, count); });
}

template <class V>
struct RowKernels {
  static bool rms_norm(const float* x, const float* weight, int64_t n, float eps, float* out) {
    V sums = V::all(0);
    for_vectors(
        n, [&](int64_t i) { sums = fma(V::load(x + i), V::load(x + i), sums); },
        [&](int64_t i, int count) {
          const V v = V::load_partial(x + i, count);
          sums = select(V::first(count), fma(v, v, sums), sums);
        });
    const float sum = tree_sum(sums);
    const V factor = V::all(1.0f / std::sqrt(sum / static_cast<float>(n) + eps));
    for_vectors(
        n, [&](int64_t i) { (V::load(x + i) * factor * V::load(weight + i)).store(out + i); },
        [&](int64_t i, int count) {
          (V::load_partial(x + i, count) * factor * V::load_partial(weight + i, count))
              .store_partial(out + i, count);
        });
    return std::isfinite(sum);
  }

  static bool add(float* x, const float* y, int64_t n) {
    V poison = V::all(0);  // 0 times a value is 0, unless it is not finite
    transform<V>(x, n, [&](V v, int64_t i, int count) {
      const V sum = v + V::load_partial(y + i, count);
      poison = fma(sum, V::all(0), poison);
      return sum;
    });
    return tree_sum(poison) == 0.0f;
  }

  static void add_scaled(float* x, const float* y, int64_t n, float factor) {
    transform<V>(x, n, [&](V v, int64_t i, int count) {
      return fma(V::load_partial(y + i, count), V::all(factor), v);
    });
  }

  static void scale(float* x, int64_t n, float factor) {
    transform<V>(x, n, [&](V v, int64_t, int) { return v * V::all(factor); });
  }

  template <Activation activation>
  static void gate_with(const float* gate, const float* up, int64_t n, float* out) {
    for_vectors(
        n, [&](int64_t i) { gated(activation, V::load(gate + i), V::load(up + i)).store(out + i); },
        [&](int64_t i, int count) {
          gated(activation, V::load_partial(gate + i, count), V::load_partial(up + i, count))
              .store_partial(out + i, count);
        });
  }
  static void gate(Activation activation, const float* gate, const float* up, int64_t n, float* out) {
    switch (activation) {
      case Activation::kSilu: return gate_with<Activation::kSilu>(gate, up, n, out);
      case Activation::kGeluTanh: return gate_with<Activation::kGeluTanh>(gate, up, n, out);
      case Activation::kClampedSwiGlu: return gate_with<Activation::kClampedSwiGlu>(gate, up, n, out);
    }
  }

  static void soft_cap(float* x, int64_t n, float cap) {
    transform<V>(x, n, [&](V v, int64_t, int) { return V::all(cap) * vec::tanh(v / V::all(cap)); });
  }

  static void rope(float* x, const float* cos, const float* sin, int half) {
    const V zero = V::all(0);
    for (int i = 0; i < half; i += 16) {
      const int count = half - i < 16 ? half - i : 16;
      const V a = V::load_partial(x + i, count), b = V::load_partial(x + half + i, count);
      const V c = V::load_partial(cos + i, count), s = V::load_partial(sin + i, count);
      fma(a, c, zero - b * s).store_partial(x + i, count);
      fma(b, c, a * s).store_partial(x + half + i, count);
    }
  }

  // The words of sums of one block from those of 16 (QuantizedRows), `stride` apart.
  static void store_sums(const int* s, int block, int32_t* out, int stride) {
    const auto pair = [](int low, int high) { return (low & 0xFFFF) | static_cast<int32_t>(high << 16); };
    if (block == 32) {
      *out = pair(s[0], s[1]);
      return;
    }
    const auto put = [&](int word, int low, int high) { out[word * stride] = pair(low, high); };
    for (int quad = 0; quad < 4; ++quad) {
      put(2 * quad, s[4 * quad + 3], s[4 * quad + 1]);
      put(2 * quad + 1, s[4 * quad + 2], s[4 * quad]);
    }
    for (int quad = 0; quad < 2; ++quad, s += 8) {
      put(8 + 2 * quad, s[6] + s[7], s[2] + s[3]);
      put(9 + 2 * quad, s[4] + s[5], s[0] + s[1]);
    }
  }

  // One block of row m of a tile whose codes begin at q, in runs of kRun. Returns a vector that is 0 unless a
  // value is not finite, as in add().
  template <int kRun>
  static V quantize_block(const float* x, const QuantizedRows& out, int64_t m, int8_t* q, float* d,
                          int32_t* sums) {
    const int block = out.block;
    V amax_lanes = V::all(0), poison = V::all(0);
    for (int i = 0; i < block; i += 16) {
      const V v = V::load(x + i);
      amax_lanes = max(amax_lanes, abs(v));
      poison = fma(v, V::all(0), poison);
    }
    const float amax = max_lane(amax_lanes);
    const bool tiny = !(amax > scalar::kQuantizeTiny);
    const V inverse = V::all(tiny ? 0.0f : 127.0f / amax);
    *d = tiny ? 0.0f : amax / 127.0f;
    int sums16[16];
    for (int i = 0; i < block; i += 16) {
      alignas(16) int8_t codes[16];
      store_i8(codes, V::load(x + i) * inverse);
      sums16[i / 16] = V::sum_i8(codes);
      constexpr int kStep = kRun < 16 ? kRun : 16;
      for (int k = 0; k < 16; k += kStep)
        std::memcpy(q + ((i + k) / kRun * out.tile + m) * kRun + (i + k) % kRun, codes + k, kStep);
    }
    store_sums(sums16, block, sums, out.tile);
    return poison;
  }

  template <int kRun>
  static bool quantize_runs(const float* x, int64_t rows, int64_t index, const QuantizedRows& out) {
    const int tile = out.tile, words = sums_per_block(out.block);
    int8_t* q = out.q_tile(index);
    float* d = out.d_tile(index);
    int32_t* sums = out.sums_tile(index);
    V poison = V::all(0);
    for (int64_t b = 0; b < out.blocks(); ++b) {
      for (int64_t m = 0; m < rows; ++m)
        poison = poison + quantize_block<kRun>(x + m * out.cols + b * out.block, out, m, q, d + m, sums + m);
      q += out.block * tile;
      d += tile;
      sums += words * tile;
    }
    return tree_sum(poison) == 0.0f;
  }
  static bool quantize_tile(const float* x, int64_t rows, int64_t index, const QuantizedRows& out) {
    switch (out.run) {
      case 4: return quantize_runs<4>(x, rows, index, out);
      case 32: return quantize_runs<32>(x, rows, index, out);
      default: TERCET_CHECK(out.run == 64); return quantize_runs<64>(x, rows, index, out);
    }
  }
};

}  // namespace tercet::backend
