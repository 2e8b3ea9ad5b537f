// Attention over the paged cache in plain code.
#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/scalar/scalar_kernels.h"
#include "base/float16.h"
#include "base/vec_math.h"

namespace tercet::backend::scalar {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

float load(KvType type, const std::byte* base, int64_t index) {
  if (type == KvType::kF32) {
    float value;
    std::memcpy(&value, base + index * 4, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, base + index * 2, 2);
  return f16_to_f32(bits);
}

void store(KvType type, float value, int64_t index, std::byte* base) {
  if (type == KvType::kF32) {
    std::memcpy(base + index * 4, &value, 4);
    return;
  }
  const uint16_t bits = f32_to_f16(value);
  std::memcpy(base + index * 2, &bits, 2);
}

float score(const AttentionTile& tile, int row, int position) {
  const std::byte* k = tile.k + tile.table[position / 16] * tile.k_stride;
  float acc = 0;
  for (int d = 0; d < tile.k_dim; ++d)
    acc = std::fma(tile.q[row][d], load(tile.type, k, d * 16 + position % 16), acc);
  acc = acc * tile.scale;
  return tile.soft_cap == 0 ? acc : tile.soft_cap * vec::tanh(ScalarF32{acc / tile.soft_cap}).v;
}

}  // namespace

void store_k(KvType type, const float* k, int dim, int slot, std::byte* block) {
  for (int d = 0; d < dim; ++d) store(type, k[d], d * 16 + slot, block);
}

void store_v(KvType type, const float* v, int dim, int slot, std::byte* block) {
  for (int d = 0; d < dim; ++d) store(type, v[d], slot * dim + d, block);
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
