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
  // Rows of a pass, whose accumulators are in registers at once; the most of them; and vectors of keys or
  // dimensions for each of R rows.
  static constexpr int kPassRows[] = {1, 2, 4, 6, 8, 12, 16, 24};
  static constexpr int kRows = V::kManyRegisters ? 24 : 6;
  template <int R>
  static constexpr int kVectors = R == 1                         ? 4
                                  : R == 2                       ? (V::kManyRegisters ? 4 : 2)
                                  : R <= 12 && V::kManyRegisters ? 2
                                                                 : 1;
  static constexpr int kBlocks = kAttentionSegment / 16;
  static constexpr int kElementBytes = kv_element_bytes(type);
  // Floats from a row of queries or scores to the next: one address and constants reach them all, and their
  // lines do not share sets of the first cache.
  static constexpr int kRowStride = kAttentionSegment + 16;
  // Dimensions of queries that are at hand at once. Integer sums do not stop halfway.
  static constexpr int kDims = type == KvType::kInt8 ? std::numeric_limits<int>::max() : 256;

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
    Range all;       // first to last position that any of them reads
    int last_block;  // from the segment's first, that any of them reads, in whatever segment

    // Of a block counted from the segment's first; of the last one where there are no more.
    const std::byte* k(int block) const {
      const int index = segment * kBlocks + std::min(block, last_block);
      return tile.k + tile.table[index] * tile.k_stride;
    }
    const std::byte* v(int block) const {
      const int index = segment * kBlocks + std::min(block, last_block);
      return tile.v + tile.table[index] * tile.v_stride;
    }
  };
  // Scores, then exponentials, of each row's positions.
  template <int R>
  using Scores = float[R][kRowStride];

  // K or V of as many blocks as a pass of R rows reads at once.
  template <int R>
  using Blocks = const std::byte * [kVectors<R>];
  // What comes next, to be asked from memory while keys are multiplied: later keys, and these keys' values.
  template <int R>
  struct Ahead {
    Blocks<R> k, v;

    void prefetch(int b, int offset) const {
      Ops::prefetch_far(k[b] + offset);
      Ops::prefetch_far(v[b] + offset);
    }
  };

  // sums += the products of dimensions [0, dims) of queries with the keys of kVectors<R> blocks.
  template <int R>
  static void dots(const float (*q)[kRowStride], int dims, const Blocks<R>& k, const Ahead<R>& ahead,
                   V (&sums)[R][kVectors<R>]) {
    V acc[R][kVectors<R>];
    copy<R>(sums, acc);
#pragma GCC unroll 1
    for (int d = 0; d < dims; ++d) {
      V keys[kVectors<R>];
#pragma GCC unroll 4
      for (int b = 0; b < kVectors<R>; ++b) {
        keys[b] = load(k[b], d * 16);
        if (d * 16 * kElementBytes % 64 == 0) ahead.prefetch(b, d * 16 * kElementBytes);
      }
#pragma GCC unroll 24
      for (int r = 0; r < R; ++r) {
        const V query = V::all(q[r][d]);
#pragma GCC unroll 4
        for (int b = 0; b < kVectors<R>; ++b) acc[r][b] = fma(query, keys[b], acc[r][b]);
      }
    }
    copy<R>(acc, sums);
  }

  // Accumulators stay in registers while no index into them varies, so they are an array of their own.
  template <int R>
  static void copy(const V (&from)[R][kVectors<R>], V (&to)[R][kVectors<R>]) {
#pragma GCC unroll 24
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int b = 0; b < kVectors<R>; ++b) to[r][b] = from[r][b];
  }

  // The same with int8 queries and keys [k_dim / 4][16][4]: exact integers, times both scales.
  template <int R>
  static void dots_i8(const Rows<R>& rows, const Blocks<R>& k, const Ahead<R>& ahead,
                      V (&out)[R][kVectors<R>]) {
    using I = typename Ops::I;
    const int groups = (rows.tile.k_dim + 3) / 4;
    alignas(64) float dot[R][kVectors<R>][16];
    for (int lane = 0; lane < 16; lane += Ops::kRows) {
      I acc[R][kVectors<R>];
#pragma GCC unroll 24
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
          ahead.prefetch(b, g * 64);
        }
#pragma GCC unroll 24
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
#pragma GCC unroll 24
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

  // Unscaled scores of all blocks that a row reads. What depends on dimensions from kDims on is added in
  // rounds of its own.
  template <int R>
  static void unscaled_scores(const Rows<R>& rows, Scores<R>& p) {
    const int last = rows.all.last / 16, k_dim = rows.tile.k_dim;
    alignas(64) float q[R][kRowStride];
    for (int begin = 0; begin < k_dim;) {
      const int dims = std::min(kDims, k_dim - begin);
      if constexpr (type != KvType::kInt8)
        for (int r = 0; r < R; ++r)
          std::memcpy(q[r], rows.tile.q[rows.index[r]] + begin, static_cast<size_t>(dims) * sizeof(float));
      for (int block = rows.all.first / 16; block <= last; block += kVectors<R>) {
        Blocks<R> k;
        Ahead<R> ahead;
        for (int b = 0; b < kVectors<R>; ++b) {
          const int offset = begin * 16 * kElementBytes;
          k[b] = rows.k(block + b) + offset;
          ahead.k[b] = rows.k(block + std::max(kVectors<R>, 2) + b) + offset;
          ahead.v[b] = rows.v(block + b) + offset;
        }
        const int vectors = std::min(kVectors<R>, last - block + 1);
        V dot[R][kVectors<R>];
        if constexpr (type == KvType::kInt8) {
          dots_i8<R>(rows, k, ahead, dot);
        } else {
          for (int r = 0; r < R; ++r)
            for (int b = 0; b < kVectors<R>; ++b)
              dot[r][b] = begin > 0 && b < vectors ? V::load(p[r] + (block + b) * 16) : V::all(0);
          dots<R>(q, dims, k, ahead, dot);
        }
        for (int r = 0; r < R; ++r)
          for (int b = 0; b < vectors; ++b) dot[r][b].store(p[r] + (block + b) * 16);
      }
      begin += dims;
    }
  }

  // One row: unscaled scores p become exponentials, with int8 times the scale of the value that each will
  // weigh.
  template <int R>
  static void exponentials(const Rows<R>& rows, int r, float* p, AttentionPartial& out) {
    const int index = rows.index[r];
    const Range range = rows.range[r];
    const V minus_infinity = V::all(-std::numeric_limits<float>::infinity());
    if (range.first > range.last) {
      out.max[index] = -std::numeric_limits<float>::infinity();
      out.sum[index] = 0;
      return;
    }
    const float cap = rows.tile.soft_cap;
    V max_lanes = minus_infinity;
    for (int b = rows.all.first / 16; b <= rows.all.last / 16; ++b) {
      V score = V::load(p + b * 16) * V::all(rows.tile.scale);
      if (cap != 0) score = V::all(cap) * vec::tanh(score / V::all(cap));
      const int begin = range.first - b * 16, end = range.last + 1 - b * 16;
      if (end < 16) score = select(V::first(end), score, minus_infinity);
      if (begin > 0) score = select(V::first(begin), minus_infinity, score);
      score.store(p + b * 16);
      max_lanes = max(max_lanes, score);
    }
    const float max = max_lane(max_lanes);
    V sums = V::all(0);
    for (int b = rows.all.first / 16; b <= rows.all.last / 16; ++b) {
      V e = vec::exp(V::load(p + b * 16) - V::all(max));
      sums = sums + e;
      if constexpr (type == KvType::kInt8) e = e * V::load(kv_scales(rows.v(b), rows.tile.v_dim));
      e.store(p + b * 16);
    }
    out.max[index] = max;
    out.sum[index] = tree_sum(sums);
  }

  // sums += p V for positions [begin, end), at dimension d. Unless kWhole, a row may not read some of them.
  template <int R, bool kWhole>
  static void weigh(const Rows<R>& rows, int begin, int end, int d, const Scores<R>& p,
                    V (&sums)[R][kVectors<R>]) {
    if (begin >= end) return;
    const int v_dim = rows.tile.v_dim;
    int offset[kVectors<R>];  // of each vector, or of the first one again
    for (int b = 0; b < kVectors<R>; ++b) offset[b] = d + b * 16 < v_dim ? d + b * 16 : d;
    // Of K for each position of V, so that all passes over V ask for all keys of the next segment.
    const auto k_bytes = static_cast<int>(k_head_bytes(type, rows.tile.k_dim));
    const int next_bytes = k_bytes * kVectors<R> / v_dim;
    V acc[R][kVectors<R>];
    copy<R>(sums, acc);
    for (int first = begin; first < end; first = first / 16 * 16 + 16) {
      const int block = first / 16, last = std::min(end, block * 16 + 16);
      const int row_bytes = v_dim * kElementBytes;
      const std::byte* v = rows.v(block) + first % 16 * row_bytes;
      const std::byte* next_v = rows.v(block + 1) + first % 16 * row_bytes + d * kElementBytes;
      const std::byte* next_k = rows.k(block + kBlocks) + k_bytes * d / v_dim;
#pragma GCC unroll 1
      for (int position = first; position < last; ++position) {
        V values[kVectors<R>];
#pragma GCC unroll 4
        for (int b = 0; b < kVectors<R>; ++b) values[b] = load(v, offset[b]);
        Ops::prefetch_near(next_v);
        Ops::prefetch_far(next_k);
        v += row_bytes, next_v += row_bytes, next_k += next_bytes;
#pragma GCC unroll 24
        for (int r = 0; r < R; ++r) {
          if (!kWhole && (position < rows.range[r].first || position > rows.range[r].last)) continue;
          const V weight = V::all(p[r][position]);
#pragma GCC unroll 4
          for (int b = 0; b < kVectors<R>; ++b) acc[r][b] = fma(weight, values[b], acc[r][b]);
        }
      }
    }
    copy<R>(acc, sums);
  }

  template <int R>
  static void weigh_values(const Rows<R>& rows, const Scores<R>& p, AttentionPartial& out) {
    const int v_dim = rows.tile.v_dim;
    // Positions that every row reads lie between those that some do.
    Range whole = {0, kAttentionSegment - 1};
    for (const Range& range : rows.range)
      whole = {std::max(whole.first, range.first), std::min(whole.last, range.last)};
    if (whole.first > whole.last) whole = {rows.all.last + 1, rows.all.last};
    for (int d = 0; d < v_dim; d += 16 * kVectors<R>) {
      V acc[R][kVectors<R>];
#pragma GCC unroll 24
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int b = 0; b < kVectors<R>; ++b) acc[r][b] = V::all(0);
      weigh<R, false>(rows, rows.all.first, whole.first, d, p, acc);
      weigh<R, true>(rows, whole.first, whole.last + 1, d, p, acc);
      weigh<R, false>(rows, whole.last + 1, rows.all.last + 1, d, p, acc);
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
    Rows<R> rows{tile, segment, {}, {}, {kAttentionSegment, -1}, 0};
    const int begin = segment * kAttentionSegment;
    for (int r = 0; r < R; ++r) {
      const int index = rows.index[r] = first_row + std::min(r, count - 1);
      Range& range = rows.range[r];
      range = {std::max(tile.first[index] - begin, 0),
               std::min(tile.last[index] - begin, kAttentionSegment - 1)};
      rows.last_block = std::max(rows.last_block, tile.last[index] / 16 - segment * kBlocks);
      if (range.first > range.last) continue;
      rows.all = {std::min(rows.all.first, range.first), std::max(rows.all.last, range.last)};
    }
    alignas(64) Scores<R> p;
    unscaled_scores<R>(rows, p);
    for (int r = 0; r < R; ++r) exponentials<R>(rows, r, p[r], out);
    weigh_values<R>(rows, p, out);
  }

  static void run(const AttentionTile& tile, int segment, AttentionPartial& out) {
    // As few passes as there can be, of one size.
    const int passes = (tile.num_rows + kRows - 1) / kRows;
    const int rows = (tile.num_rows + passes - 1) / passes;
    for (int row = 0; row < tile.num_rows; row += rows)
      pass(tile, segment, row, std::min(rows, tile.num_rows - row), out);
  }

  template <int i = 0>
  static void pass(const AttentionTile& tile, int segment, int first_row, int count, AttentionPartial& out) {
    if constexpr (kPassRows[i] < kRows)
      if (count > kPassRows[i]) return pass<i + 1>(tile, segment, first_row, count, out);
    some_rows<kPassRows[i]>(tile, segment, first_row, count, out);
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
