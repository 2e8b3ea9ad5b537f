// Attention over the paged cache in plain code.
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "backend/cpu/scalar/scalar_kernels.h"
#include "base/float16.h"
#include "base/float8.h"
#include "base/vec_math.h"

namespace tercet::backend::scalar {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

float load(KvType type, const std::byte* base, int64_t index) {
  const std::byte* p = base + index * kv_element_bytes(type);
  uint16_t half;
  switch (type) {
    case KvType::kF32: {
      float value;
      std::memcpy(&value, p, 4);
      return value;
    }
    case KvType::kF16: std::memcpy(&half, p, 2); return f16_to_f32(half);
    case KvType::kBF16: std::memcpy(&half, p, 2); return bf16_to_f32(half);
    case KvType::kE4M3: return e4m3_to_f32(static_cast<uint8_t>(*p));
    case KvType::kE5M2: return e5m2_to_f32(static_cast<uint8_t>(*p));
    case KvType::kInt8: return static_cast<float>(static_cast<int8_t>(*p));
  }
  return 0;
}

void store(KvType type, float value, int64_t index, std::byte* base) {
  std::byte* p = base + index * kv_element_bytes(type);
  const auto put = [&](auto bits) { std::memcpy(p, &bits, sizeof bits); };
  switch (type) {
    case KvType::kF32: return put(value);
    case KvType::kF16: return put(f32_to_f16(value));
    case KvType::kBF16: return put(f32_to_bf16(value));
    case KvType::kE4M3: return put(f32_to_e4m3(value));
    case KvType::kE5M2: return put(f32_to_e5m2(value));
    case KvType::kInt8: return;  // quantized by heads
  }
}

float score(const AttentionTile& tile, int row, int position) {
  const std::byte* k = tile.k + tile.table[position / 16] * tile.k_stride;
  const int slot = position % 16;
  float acc = 0;
  if (tile.type == KvType::kInt8) {
    int32_t sum = 0;
    for (int d = 0; d < tile.k_dim; ++d)
      sum += tile.q8[row][d] * static_cast<int8_t>(k[(d / 4 * 16 + slot) * 4 + d % 4]);
    acc = static_cast<float>(sum) * kv_scales(k, (tile.k_dim + 3) / 4 * 4)[slot] * tile.q8_scale[row];
  } else {
    for (int d = 0; d < tile.k_dim; ++d)
      acc = std::fma(tile.q[row][d], load(tile.type, k, d * 16 + slot), acc);
  }
  acc = acc * tile.scale;
  return tile.soft_cap == 0 ? acc : tile.soft_cap * vec::tanh(ScalarF32{acc / tile.soft_cap}).v;
}

}  // namespace

float quantize_head(const float* x, int dim, int8_t* q) {
  float amax = 0;
  for (int d = 0; d < dim; ++d) amax = std::fabs(x[d]) > amax ? std::fabs(x[d]) : amax;
  const bool tiny = !(amax > kQuantizeTiny);
  const float inverse = tiny ? 0.0f : 127.0f / amax;
  for (int d = 0; d < dim; ++d) {
    const float scaled = x[d] * inverse;
    q[d] = std::isfinite(scaled) ? static_cast<int8_t>(std::nearbyint(scaled)) : int8_t{0};
  }
  return tiny ? 0.0f : amax / 127.0f;
}

void store_k(KvType type, const float* k, int dim, int slot, std::byte* block) {
  if (type != KvType::kInt8) {
    for (int d = 0; d < dim; ++d) store(type, k[d], d * 16 + slot, block);
    return;
  }
  const int padded = (dim + 3) / 4 * 4;
  std::vector<int8_t> q(static_cast<size_t>(padded));
  const float scale = quantize_head(k, dim, q.data());
  for (int d = 0; d < padded; d += 4)
    std::memcpy(block + (d / 4 * 16 + slot) * 4, &q[static_cast<size_t>(d)], 4);
  std::memcpy(block + padded * 16 + slot * 4, &scale, 4);
}

void store_v(KvType type, const float* v, int dim, int slot, std::byte* block) {
  if (type != KvType::kInt8) {
    for (int d = 0; d < dim; ++d) store(type, v[d], slot * dim + d, block);
    return;
  }
  const float scale = quantize_head(v, dim, reinterpret_cast<int8_t*>(block) + slot * dim);
  std::memcpy(block + dim * 16 + slot * 4, &scale, 4);
}

void attention_segment(const AttentionTile& tile, int segment, AttentionPartial& out) {
  for (int row = 0; row < tile.num_rows; ++row) {
    const int first = std::max(tile.first[row], segment * kAttentionSegment);
    const int last = std::min(tile.last[row], segment * kAttentionSegment + kAttentionSegment - 1);
    float p[kAttentionSegment];
    float max = kMinusInfinity;
    for (int i = first; i <= last; ++i) {
      p[i - first] = score(tile, row, i);
      max = p[i - first] > max ? p[i - first] : max;
    }
    float lanes[16] = {};
    for (int i = first; i <= last; ++i) {
      p[i - first] = vec::exp(ScalarF32{p[i - first] - max}).v;
      lanes[i % 16] = lanes[i % 16] + p[i - first];
      if (tile.type == KvType::kInt8)
        p[i - first] =
            p[i - first] * kv_scales(tile.v + tile.table[i / 16] * tile.v_stride, tile.v_dim)[i % 16];
    }
    for (int width = 8; width > 0; width /= 2)
      for (int lane = 0; lane < width; ++lane) lanes[lane] = lanes[lane] + lanes[lane + width];
    out.max[row] = max;
    out.sum[row] = lanes[0];
    for (int d = 0; d < tile.v_dim; ++d) {
      float acc = 0;
      for (int i = first; i <= last; ++i) {
        const std::byte* v = tile.v + tile.table[i / 16] * tile.v_stride;
        acc = std::fma(p[i - first], load(tile.type, v, (i % 16) * tile.v_dim + d), acc);
      }
      out.o[row * tile.v_dim + d] = acc;
    }
  }
}

void attention_merge(int num_rows, int v_dim, const AttentionPartial& from, AttentionPartial& into) {
  for (int row = 0; row < num_rows; ++row) {
    if (from.sum[row] == 0) continue;
    const float* o = from.o + row * v_dim;
    float* total = into.o + row * v_dim;
    if (into.sum[row] == 0) {
      into.max[row] = from.max[row];
      into.sum[row] = from.sum[row];
      std::memcpy(total, o, static_cast<size_t>(v_dim) * sizeof(float));
      continue;
    }
    const float max = into.max[row] > from.max[row] ? into.max[row] : from.max[row];
    const float a = vec::exp(ScalarF32{into.max[row] - max}).v;
    const float b = vec::exp(ScalarF32{from.max[row] - max}).v;
    into.max[row] = max;
    into.sum[row] = std::fma(into.sum[row], a, from.sum[row] * b);
    for (int d = 0; d < v_dim; ++d) total[d] = std::fma(total[d], a, o[d] * b);
  }
}

void attention_finish(int num_rows, int v_dim, const AttentionPartial& partial, float* const* out) {
  for (int row = 0; row < num_rows; ++row)
    for (int d = 0; d < v_dim; ++d) out[row][d] = partial.o[row * v_dim + d] / partial.sum[row];
}

}  // namespace tercet::backend::scalar
