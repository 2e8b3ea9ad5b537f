// Attention over the paged cache for any sixteen-lane vector type V and the integer operations Ops of the
// same instruction set. For scores the lanes are the 16 keys of a block and the chain runs over the head's
// dimensions; for P V the lanes are dimensions and the chain runs over positions. Rows of a tile share the
// loads of K and V; what a row computes does not depend on its neighbours.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>

#include "backend/cpu/isa/row_kernels.h"
#include "backend/cpu/kernels.h"
#include "base/vec_math.h"

namespace tercet::backend {

template <class V, class Ops, KvType type>
struct AttentionKernel {
  // Rows whose accumulators are in registers at once; and vectors of keys or dimensions for each of R rows.
  static constexpr int kRows = V::kManyRegisters ? 12 : 6;
  template <int R>
  static constexpr int kVectors = R == 1   ? 4
                                  : R == 2 ? (V::kManyRegisters ? 4 : 2)
                                           : (V::kManyRegisters ? 2 : 1);
  static constexpr int kBlocks = kAttentionSegment / 16;
  static constexpr int kElementBytes = kv_element_bytes(type);

  static V load(const std::byte* base, int64_t index) {
    const std::byte* p = base + index * kElementBytes;
    if constexpr (type == KvType::kF32) return V::load(reinterpret_cast<const float*>(p));
    if constexpr (type == KvType::kF16) return V::load_f16(reinterpret_cast<const uint16_t*>(p));
    if constexpr (type == KvType::kBF16) return V::load_bf16(reinterpret_cast<const uint16_t*>(p));
    if constexpr (type == KvType::kE4M3) return V::load_e4m3(reinterpret_cast<const uint8_t*>(p));
    if constexpr (type == KvType::kE5M2) return V::load_e5m2(reinterpret_cast<const uint8_t*>(p));
    return V::load_i8(reinterpret_cast<const int8_t*>(p));
  }

  // The part of the segment that a row reads, as positions within it; empty when first > last.
  struct Range {
    int first, last;
  };
  // R rows of a tile at a segment.
  template <int R>
  struct Rows {
    const AttentionTile& tile;
    int segment;
    int index[R];  // in the tile; the last one may come again
    Range range[R];
    Range all;  // first to last position that any of them reads

    const std::byte* k(int block) const {
      return tile.k + tile.table[segment * kBlocks + block] * tile.k_stride;
    }
    const std::byte* v(int block) const {
      return tile.v + tile.table[segment * kBlocks + block] * tile.v_stride;
    }
  };

  // Unscaled scores of the keys of kVectors<R> blocks. `next` is what to ask memory for meanwhile.
  template <int R>
  static void dots(const Rows<R>& rows, const std::byte* const* k, const std::byte* const* next,
                   V (&out)[R][kVectors<R>]) {
    const float* q[R];
    V acc[R][kVectors<R>];
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      q[r] = rows.tile.q[rows.index[r]];
#pragma GCC unroll 4
      for (int b = 0; b < kVectors<R>; ++b) acc[r][b] = V::all(0);
    }
#pragma GCC unroll 1
    for (int d = 0; d < rows.tile.k_dim; ++d) {
      V keys[kVectors<R>];
#pragma GCC unroll 4
      for (int b = 0; b < kVectors<R>; ++b) {
        keys[b] = load(k[b], d * 16);
        Ops::prefetch_near(next[b] + d * 16 * kElementBytes);
      }
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) {
        const V query = V::all(q[r][d]);
#pragma GCC unroll 4
        for (int b = 0; b < kVectors<R>; ++b) acc[r][b] = fma(query, keys[b], acc[r][b]);
      }
    }
    copy<R>(acc, out);
  }

  // Accumulators stay in registers while no index into them varies, so they are an array of their own.
  template <int R>
  static void copy(const V (&from)[R][kVectors<R>], V (&to)[R][kVectors<R>]) {
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int b = 0; b < kVectors<R>; ++b) to[r][b] = from[r][b];
  }

  // The same with int8 queries and keys [k_dim / 4][16][4]: exact integers, times both scales.
  template <int R>
  static void dots_i8(const Rows<R>& rows, const std::byte* const* k, const std::byte* const* next,
                      V (&out)[R][kVectors<R>]) {
    using I = typename Ops::I;
    const int groups = (rows.tile.k_dim + 3) / 4;
    alignas(64) float dot[R][kVectors<R>][16];
    for (int lane = 0; lane < 16; lane += Ops::kRows) {
      I acc[R][kVectors<R>];
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) {
        const I start = Ops::kVnni ? Ops::all32(-128 * rows.tile.q8_sum[rows.index[r]]) : Ops::zero();
#pragma GCC unroll 4
        for (int b = 0; b < kVectors<R>; ++b) acc[r][b] = start;
      }
      for (int g = 0; g < groups; ++g) {
        I keys[kVectors<R>];
#pragma GCC unroll 4
        for (int b = 0; b < kVectors<R>; ++b) {
          keys[b] = Ops::load(k[b] + g * 64 + lane * 4);
          if (Ops::kVnni) keys[b] = Ops::flip_sign_bits(keys[b]);
          Ops::prefetch_near(next[b] + g * 64);
        }
#pragma GCC unroll 12
        for (int r = 0; r < R; ++r) {
          const I query = Ops::broadcast4(rows.tile.q8[rows.index[r]] + g * 4);
#pragma GCC unroll 4
          for (int b = 0; b < kVectors<R>; ++b) {
            if constexpr (Ops::kVnni) {
              acc[r][b] = Ops::dot4(acc[r][b], keys[b], query);
            } else {
              acc[r][b] = Ops::madd_add(acc[r][b], Ops::products_signed(keys[b], query), Ops::all16(1));
            }
          }
        }
      }
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int b = 0; b < kVectors<R>; ++b) Ops::store_f32(dot[r][b] + lane, Ops::to_float(acc[r][b]));
    }
    for (int b = 0; b < kVectors<R>; ++b) {
      const V scales = V::load(kv_scales(k[b], groups * 4));
      for (int r = 0; r < R; ++r)
        out[r][b] = V::load(dot[r][b]) * scales * V::all(rows.tile.q8_scale[rows.index[r]]);
    }
  }

  // Scores into p[r][256], minus infinity where row r does not read; and the largest of each lane.
  template <int R>
  static void scores(const Rows<R>& rows, float (*p)[kAttentionSegment], V* max_lanes) {
    const V minus_infinity = V::all(-std::numeric_limits<float>::infinity());
    const float cap = rows.tile.soft_cap;
    for (int r = 0; r < R; ++r) max_lanes[r] = minus_infinity;
    const int last = rows.all.last / 16;
    for (int block = rows.all.first / 16; block <= last; block += kVectors<R>) {
      const std::byte *k[kVectors<R>], *next[kVectors<R>];
      for (int b = 0; b < kVectors<R>; ++b) {
        k[b] = rows.k(std::min(block + b, last));
        next[b] = rows.k(std::min(block + kVectors<R> + b, last));
      }
      V dot[R][kVectors<R>];
      if constexpr (type == KvType::kInt8) {
        dots_i8<R>(rows, k, next, dot);
      } else {
        dots<R>(rows, k, next, dot);
      }
      for (int b = 0; b < std::min(kVectors<R>, last - block + 1); ++b) {
        const int first_key = (block + b) * 16;
        for (int r = 0; r < R; ++r) {
          V score = dot[r][b] * V::all(rows.tile.scale);
          if (cap != 0) score = V::all(cap) * vec::tanh(score / V::all(cap));
          const int begin = rows.range[r].first - first_key, end = rows.range[r].last + 1 - first_key;
          if (end < 16) score = select(V::first(end), score, minus_infinity);
          if (begin > 0) score = select(V::first(begin), minus_infinity, score);
          score.store(p[r] + first_key);
          max_lanes[r] = max(max_lanes[r], score);
        }
      }
    }
  }

  // p[r][256] becomes exponentials, with int8 times the scale of the value that each will weigh; fills max
  // and sum.
  template <int R>
  static void exponentials(const Rows<R>& rows, const V* max_lanes, float (*p)[kAttentionSegment],
                           AttentionPartial& out) {
    for (int r = 0; r < R; ++r) {
      const int index = rows.index[r];
      if (rows.range[r].first > rows.range[r].last) {
        out.max[index] = -std::numeric_limits<float>::infinity();
        out.sum[index] = 0;
        continue;
      }
      const float max = max_lane(max_lanes[r]);
      V sums = V::all(0);
      for (int b = rows.all.first / 16; b <= rows.all.last / 16; ++b) {
        V e = vec::exp(V::load(p[r] + b * 16) - V::all(max));
        sums = sums + e;
        if constexpr (type == KvType::kInt8) e = e * V::load(kv_scales(rows.v(b), rows.tile.v_dim));
        e.store(p[r] + b * 16);
      }
      out.max[index] = max;
      out.sum[index] = tree_sum(sums);
    }
  }

  // sums += p V for positions [begin, end) of a block, at dimension d.
  template <int R, bool kWhole>
  static void weigh_block(const Rows<R>& rows, int block, int begin, int end, int d, const std::byte* next,
                          const float (*p)[kAttentionSegment], V (&sums)[R][kVectors<R>]) {
    const int v_dim = rows.tile.v_dim;
    const std::byte* v = rows.v(block);
    int offset[kVectors<R>];  // of each vector, or of the first one again
    for (int b = 0; b < kVectors<R>; ++b) offset[b] = d + b * 16 < v_dim ? d + b * 16 : d;
    V acc[R][kVectors<R>];
    copy<R>(sums, acc);
    for (int i = begin; i < end; ++i) {
      V values[kVectors<R>];
#pragma GCC unroll 4
      for (int b = 0; b < kVectors<R>; ++b) {
        values[b] = load(v, i * v_dim + offset[b]);
        if (b * 16 * kElementBytes % 64 == 0)
          Ops::prefetch_near(next + (i * v_dim + offset[b]) * kElementBytes);
      }
      const int position = block * 16 + i;
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) {
        if (!kWhole && (position < rows.range[r].first || position > rows.range[r].last)) continue;
        const V weight = V::all(p[r][position]);
#pragma GCC unroll 4
        for (int b = 0; b < kVectors<R>; ++b) acc[r][b] = fma(weight, values[b], acc[r][b]);
      }
    }
    copy<R>(acc, sums);
  }

  template <int R>
  static void weigh_values(const Rows<R>& rows, const float (*p)[kAttentionSegment], AttentionPartial& out) {
    const int v_dim = rows.tile.v_dim, last = rows.all.last / 16;
    bool whole[kBlocks];  // blocks that every row reads all of
    for (int b = 0; b < kBlocks; ++b) {
      whole[b] = true;
      for (const Range& range : rows.range)
        whole[b] = whole[b] && range.first <= b * 16 && range.last >= b * 16 + 15;
    }
    for (int d = 0; d < v_dim; d += 16 * kVectors<R>) {
      V acc[R][kVectors<R>];
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int b = 0; b < kVectors<R>; ++b) acc[r][b] = V::all(0);
      for (int b = rows.all.first / 16; b <= last; ++b) {
        const std::byte* next = rows.v(std::min(b + 1, last));
        if (whole[b]) {
          weigh_block<R, true>(rows, b, 0, 16, d, next, p, acc);
        } else {
          const int begin = std::max(rows.all.first - b * 16, 0);
          const int end = std::min(rows.all.last - b * 16, 15) + 1;
          weigh_block<R, false>(rows, b, begin, end, d, next, p, acc);
        }
      }
      for (int r = 0; r < R; ++r)
        for (int b = 0; b < kVectors<R> && d + b * 16 < v_dim; ++b)
          acc[r][b].store_partial(out.o + rows.index[r] * v_dim + d + b * 16,
                                  std::min(v_dim - d - b * 16, 16));
    }
  }

  // Rows [first_row, first_row + count), count at most R.
  template <int R>
  static void some_rows(const AttentionTile& tile, int segment, int first_row, int count,
                        AttentionPartial& out) {
    alignas(64) float p[R][kAttentionSegment];
    Rows<R> rows{tile, segment, {}, {}, {kAttentionSegment, -1}};
    const int begin = segment * kAttentionSegment;
    for (int r = 0; r < R; ++r) {
      const int index = rows.index[r] = first_row + std::min(r, count - 1);
      Range& range = rows.range[r];
      range = {std::max(tile.first[index] - begin, 0),
               std::min(tile.last[index] - begin, kAttentionSegment - 1)};
      if (range.first > range.last) continue;
      rows.all = {std::min(rows.all.first, range.first), std::max(rows.all.last, range.last)};
    }
    V max_lanes[R];
    scores<R>(rows, p, max_lanes);
    exponentials<R>(rows, max_lanes, p, out);
    weigh_values<R>(rows, p, out);
  }

  static void run(const AttentionTile& tile, int segment, AttentionPartial& out) {
    // As few passes as there can be, of one size.
    const int passes = (tile.num_rows + kRows - 1) / kRows;
    const int rows = (tile.num_rows + passes - 1) / passes;
    for (int row = 0; row < tile.num_rows; row += rows) {
      const int count = std::min(rows, tile.num_rows - row);
      if (count > std::min(kRows, 8)) {
        some_rows<kRows>(tile, segment, row, count, out);
      } else if (count > 6) {
        some_rows<std::min(kRows, 8)>(tile, segment, row, count, out);
      } else if (count > 4) {
        some_rows<std::min(kRows, 6)>(tile, segment, row, count, out);
      } else if (count > 2) {
        some_rows<4>(tile, segment, row, count, out);
      } else if (count > 1) {
        some_rows<2>(tile, segment, row, count, out);
      } else {
        some_rows<1>(tile, segment, row, count, out);
      }
    }
  }
};

template <class V, class Ops>
struct AttentionKernels {
  static void segment(const AttentionTile& tile, int segment, AttentionPartial& out) {
    switch (tile.type) {
      case KvType::kF32: return AttentionKernel<V, Ops, KvType::kF32>::run(tile, segment, out);
      case KvType::kF16: return AttentionKernel<V, Ops, KvType::kF16>::run(tile, segment, out);
      case KvType::kBF16: return AttentionKernel<V, Ops, KvType::kBF16>::run(tile, segment, out);
      case KvType::kInt8: return AttentionKernel<V, Ops, KvType::kInt8>::run(tile, segment, out);
      case KvType::kE4M3: return AttentionKernel<V, Ops, KvType::kE4M3>::run(tile, segment, out);
      case KvType::kE5M2: return AttentionKernel<V, Ops, KvType::kE5M2>::run(tile, segment, out);
    }
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
    if (type != KvType::kF16 || dim % 16 != 0) return scalar::store_v(type, v, dim, slot, block);
    for (int d = 0; d < dim; d += 16)
      store_f16(reinterpret_cast<uint16_t*>(block) + slot * dim + d, V::load(v + d));
  }
};

}  // namespace tercet::backend
