// Attention over the paged cache for any sixteen-lane vector type V. For scores the lanes are the 16 keys of
// a block and the chain runs over the head's dimensions; for P V the lanes are dimensions and the chain runs
// over positions. Rows of a tile share the loads of K and V; what a row computes does not depend on its
// neighbours.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>

#include "backend/cpu/isa/row_kernels.h"
#include "backend/cpu/kernels.h"
#include "base/vec_math.h"

namespace tercet::backend {

template <class V, KvType type>
struct AttentionKernel {
  static constexpr int kRows = 4;  // rows whose accumulators are in registers at once
  static constexpr int kBlocks = kAttentionSegment / 16;

  static V load(const std::byte* base, int64_t index) {
    if constexpr (type == KvType::kF32) return V::load(reinterpret_cast<const float*>(base) + index);
    return V::load_f16(reinterpret_cast<const uint16_t*>(base) + index);
  }

  // The part of the segment that row r reads, as positions within it; empty when first > last.
  struct Range {
    int first, last;
  };
  static Range range(const AttentionTile& tile, int segment, int row) {
    const int begin = segment * kAttentionSegment;
    return {std::max(tile.first[row] - begin, 0), std::min(tile.last[row] - begin, kAttentionSegment - 1)};
  }
  static Range union_of(const Range* ranges, int rows) {
    Range all{kAttentionSegment, -1};
    for (int r = 0; r < rows; ++r) {
      if (ranges[r].first > ranges[r].last) continue;
      all = {std::min(all.first, ranges[r].first), std::max(all.last, ranges[r].last)};
    }
    return all;
  }

  template <int R>
  static void scores(const AttentionTile& tile, int first_row, const std::byte* k, V* out) {
    V acc[R];
    for (V& value : acc) value = V::all(0);
    for (int d = 0; d < tile.k_dim; ++d) {
      const V keys = load(k, d * 16);
      for (int r = 0; r < R; ++r) acc[r] = fma(V::all(tile.q[first_row + r][d]), keys, acc[r]);
    }
    for (int r = 0; r < R; ++r) {
      acc[r] = acc[r] * V::all(tile.scale);
      out[r] =
          tile.soft_cap == 0 ? acc[r] : V::all(tile.soft_cap) * vec::tanh(acc[r] / V::all(tile.soft_cap));
    }
  }

  // p[r][256]: exponentials, zero where row r does not read; fills max and sum.
  template <int R>
  static void probabilities(const AttentionTile& tile, int segment, int first_row, const Range* ranges,
                            Range all, float (*p)[kAttentionSegment], AttentionPartial& out) {
    const V minus_infinity = V::all(-std::numeric_limits<float>::infinity());
    V max_lanes[R];
    for (V& value : max_lanes) value = minus_infinity;
    for (int b = all.first / 16; b <= all.last / 16; ++b) {
      const std::byte* k = tile.k + tile.table[segment * kBlocks + b] * tile.k_stride;
      V block_scores[R];
      scores<R>(tile, first_row, k, block_scores);
      for (int r = 0; r < R; ++r) {
        const V upto = select(V::first(ranges[r].last + 1 - b * 16), block_scores[r], minus_infinity);
        const V masked = select(V::first(ranges[r].first - b * 16), minus_infinity, upto);
        masked.store(p[r] + b * 16);
        max_lanes[r] = max(max_lanes[r], masked);
      }
    }
    for (int r = 0; r < R; ++r) {
      if (ranges[r].first > ranges[r].last) {
        out.max[first_row + r] = -std::numeric_limits<float>::infinity();
        out.sum[first_row + r] = 0;
        continue;
      }
      const float max = max_lane(max_lanes[r]);
      V sums = V::all(0);
      for (int b = all.first / 16; b <= all.last / 16; ++b) {
        const V e = vec::exp(V::load(p[r] + b * 16) - V::all(max));
        e.store(p[r] + b * 16);
        sums = sums + e;
      }
      out.max[first_row + r] = max;
      out.sum[first_row + r] = tree_sum(sums);
    }
  }

  template <int R>
  static void weigh_values(const AttentionTile& tile, int segment, int first_row, const Range* ranges,
                           Range all, const float (*p)[kAttentionSegment], AttentionPartial& out) {
    for (int d = 0; d < tile.v_dim; d += 16) {
      V acc[R];
      for (V& value : acc) value = V::all(0);
      for (int b = all.first / 16; b <= all.last / 16; ++b) {
        const std::byte* v = tile.v + tile.table[segment * kBlocks + b] * tile.v_stride;
        bool whole = true;
        for (int r = 0; r < R; ++r)
          whole = whole && ranges[r].first <= b * 16 && ranges[r].last >= b * 16 + 15;
        const int begin = std::max(all.first - b * 16, 0), end = std::min(all.last - b * 16, 15) + 1;
        for (int i = begin; i < end; ++i) {
          const V values = load(v, i * tile.v_dim + d);
          const int position = b * 16 + i;
          for (int r = 0; r < R; ++r)
            if (whole || (position >= ranges[r].first && position <= ranges[r].last))
              acc[r] = fma(V::all(p[r][position]), values, acc[r]);
        }
      }
      const int count = std::min(tile.v_dim - d, 16);
      for (int r = 0; r < R; ++r) acc[r].store_partial(out.o + (first_row + r) * tile.v_dim + d, count);
    }
  }

  template <int R>
  static void rows(const AttentionTile& tile, int segment, int first_row, AttentionPartial& out) {
    alignas(64) float p[R][kAttentionSegment];
    Range ranges[R];
    for (int r = 0; r < R; ++r) ranges[r] = range(tile, segment, first_row + r);
    const Range all = union_of(ranges, R);
    probabilities<R>(tile, segment, first_row, ranges, all, p, out);
    weigh_values<R>(tile, segment, first_row, ranges, all, p, out);
  }

  static void run(const AttentionTile& tile, int segment, AttentionPartial& out) {
    int row = 0;
    for (; row + kRows <= tile.num_rows; row += kRows) rows<kRows>(tile, segment, row, out);
    for (; row + 2 <= tile.num_rows; row += 2) rows<2>(tile, segment, row, out);
    for (; row < tile.num_rows; ++row) rows<1>(tile, segment, row, out);
  }
};

template <class V>
struct AttentionKernels {
  static void segment(const AttentionTile& tile, int segment, AttentionPartial& out) {
    if (tile.type == KvType::kF32) return AttentionKernel<V, KvType::kF32>::run(tile, segment, out);
    return AttentionKernel<V, KvType::kF16>::run(tile, segment, out);
  }

  static void merge(int num_rows, int v_dim, const AttentionPartial& from, AttentionPartial& into) {
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
      const float larger = into.max[row] > from.max[row] ? into.max[row] : from.max[row];
      const float a = max_lane(vec::exp(V::all(into.max[row] - larger)));
      const float b = max_lane(vec::exp(V::all(from.max[row] - larger)));
      into.max[row] = larger;
      into.sum[row] = std::fma(into.sum[row], a, from.sum[row] * b);
      transform<V>(total, v_dim, [&](V v, int64_t d, int count) {
        return fma(v, V::all(a), V::load_partial(o + d, count) * V::all(b));
      });
    }
  }

  static void finish(int num_rows, int v_dim, const AttentionPartial& partial, float* const* out) {
    for (int row = 0; row < num_rows; ++row) {
      std::memcpy(out[row], partial.o + row * v_dim, static_cast<size_t>(v_dim) * sizeof(float));
      transform<V>(out[row], v_dim, [&](V v, int64_t, int) { return v / V::all(partial.sum[row]); });
    }
  }

  static void store_v(KvType type, const float* v, int dim, int slot, std::byte* block) {
    if (type == KvType::kF32 || dim % 16 != 0) return scalar::store_v(type, v, dim, slot, block);
    for (int d = 0; d < dim; d += 16)
      store_f16(reinterpret_cast<uint16_t*>(block) + slot * dim + d, V::load(v + d));
  }
};

}  // namespace tercet::backend
