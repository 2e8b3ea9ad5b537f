// The kernels of the CPU device: one table of functions for each instruction set. All tables compute the same
// bits (docs/arithmetic.md); `scalar` is the definition. Kernels are pure functions of their arguments, work
// under the caller's FloatEnvironment and are called from many threads at once on disjoint outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "backend/device.h"
#include "quant/packed.h"

namespace tercet::backend {

enum class FloatType : uint8_t { kF32, kF16, kBF16 };

// Words of sums for each block of activations (QuantizedRows).
constexpr int sums_per_block(int block) { return block == 32 ? 1 : 12; }

// How rows of activations lie in a tile: `rows` of them side by side, `run` inputs of each at a time.
struct RowTile {
  int rows = 1;
  int run = 4;
};

// Rows of activations quantized to int8 per block of 32 or 256: x ~ d * q, |q| <= 127. They lie in tiles; the
// last one is padded with anything finite.
struct QuantizedRows {
  int8_t* q = nullptr;  // [tiles, cols / run, tile, run]
  float* d = nullptr;   // [tiles, cols / block, tile]
  // [tiles, cols / block, sums_per_block, tile]: pairs of sums of consecutive q, the first in the low half. A
  // block of 32: of its halves of 16. A block of 256: for each four sub-blocks of 16 a pair of the last and
  // the second and one of the third and the first; then the same for sub-blocks of 32.
  int32_t* sums = nullptr;
  int64_t cols = 0;
  int block = 32;
  int tile = 1;  // rows of one
  int run = 4;

  // Of code k of row m of a tile.
  int64_t offset(int64_t k, int64_t m) const { return (k / run * tile + m) * run + k % run; }
  // The tiles from the i-th on.
  QuantizedRows from_tile(int64_t i) const {
    QuantizedRows rest = *this;
    rest.q = q_tile(i);
    rest.d = d_tile(i);
    rest.sums = sums_tile(i);
    return rest;
  }
  int64_t blocks() const { return cols / block; }
  int8_t* q_tile(int64_t i) const { return q + i * tile * cols; }
  float* d_tile(int64_t i) const { return d + i * tile * blocks(); }
  int32_t* sums_tile(int64_t i) const { return sums + i * tile * blocks() * sums_per_block(block); }
};

// How many bytes ahead weights are asked from memory, into the first and into the second cache. 0: not at
// all.
struct Prefetch {
  int near = 0, far = 0;

  bool operator==(const Prefetch&) const = default;
};

// Part of y = x W^T + bias: the outputs of panels [panel_begin, panel_end) of W.
struct LinearTask {
  const std::byte* panels = nullptr;  // the whole weight
  int64_t panel_stride = 0;           // bytes
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t panel_begin = 0, panel_end = 0;
  int64_t rows = 0;
  const float* bias = nullptr;  // [outputs] or none
  float* y = nullptr;           // [rows, y_stride]
  int64_t y_stride = 0;
  Prefetch prefetch = {};  // where there are few rows
};

// Bytes of a KV element.
constexpr int kv_element_bytes(KvType type) {
  return type == KvType::kF32 ? 4 : type == KvType::kF16 || type == KvType::kBF16 ? 2 : 1;
}
// Bytes of one head's K or V in a block of 16 positions: K as [dim][16], V as [16][dim]. kInt8 has K as
// [dim / 4][16][4], dim padded with zeros, and 16 float scales behind K and V.
constexpr int64_t k_head_bytes(KvType type, int dim) {
  return type == KvType::kInt8 ? (dim + 3) / 4 * 64 + 64 : int64_t{dim} * 16 * kv_element_bytes(type);
}
constexpr int64_t v_head_bytes(KvType type, int dim) {
  return int64_t{dim} * 16 * kv_element_bytes(type) + (type == KvType::kInt8 ? 64 : 0);
}
// The scales behind a kInt8 head's elements, `dim` of each position.
inline const float* kv_scales(const std::byte* head, int dim) {
  return reinterpret_cast<const float*>(head + int64_t{dim} * 16);
}

// Queries that share a KV head and a block table. Row r reads positions [first[r], last[r]].
struct AttentionTile {
  static constexpr int kMaxRows = 48;
  int num_rows = 0;
  const float* q[kMaxRows];  // [k_dim] each
  // Of kInt8: the same quantized, padded with zeros to a multiple of 4; its scale, and the sum of its codes.
  const int8_t* q8[kMaxRows];
  float q8_scale[kMaxRows];
  int q8_sum[kMaxRows];
  int first[kMaxRows];
  int last[kMaxRows];
  const int32_t* table = nullptr;  // block ids
  const std::byte* k = nullptr;    // the head's K in block 0, [k_dim][16]
  const std::byte* v = nullptr;    // the head's V in block 0, [16][v_dim]
  int64_t k_stride = 0;            // bytes from a block to the next
  int64_t v_stride = 0;
  int k_dim = 0;
  int v_dim = 0;
  KvType type = KvType::kF16;
  float scale = 1;
  float soft_cap = 0;  // 0: none
};

// What attention over one segment of 256 positions leaves for each row of a tile: max score, sum of
// exponentials, and their product with V. sum is 0 where no position of the segment is read.
struct AttentionPartial {
  float max[AttentionTile::kMaxRows];
  float sum[AttentionTile::kMaxRows];
  float* o = nullptr;  // [num_rows, v_dim]
};
inline constexpr int kAttentionSegment = 256;

struct Kernels {
  // As many integer multiply-adds as the processor can do, from registers: what bounds linear layers over
  // many rows. Returns how many `rounds` rounds are.
  int64_t (*multiply_adds)(int64_t rounds);
  // The tile in which linear_packed wants `rows` rows of blocks of 32 or 256.
  RowTile (*row_tile)(int64_t rows, int block);
  // Quantizes up to `tile` rows of `cols` values into tile `index` of `out`. False when a value is not
  // finite.
  bool (*quantize_tile)(const float* x, int64_t rows, int64_t index, const QuantizedRows& out);
  void (*linear_packed)(const quant::PackedLayout& layout, const LinearTask& task, const QuantizedRows& x);
  // x: [rows, x_stride]; for BF16 weights x is rounded already and padded with zeros to a multiple of 32
  // columns.
  void (*linear_float)(FloatType type, const LinearTask& task, const float* x, int64_t x_stride);
  void (*round_row_bf16)(const float* x, int64_t n, float* out);

  // out = x / sqrt(mean(x^2) + eps) * weight over n values. False when the sum of squares is not finite.
  bool (*rms_norm)(const float* x, const float* weight, int64_t n, float eps, float* out);
  // x += y. False when a sum is not finite.
  bool (*add)(float* x, const float* y, int64_t n);
  void (*add_scaled)(float* x, const float* y, int64_t n, float factor);  // x = fma(y, factor, x)
  void (*scale)(float* x, int64_t n, float factor);                       // x *= factor
  // out = act(gate, up); out may be gate.
  void (*gate)(Activation activation, const float* gate, const float* up, int64_t n, float* out);
  void (*soft_cap)(float* x, int64_t n, float cap);  // x = cap tanh(x / cap)
  // Rotates pairs (x[i], x[i + half]) for i < half by the angles whose cosines and sines are given.
  void (*rope)(float* x, const float* cos, const float* sin, int half);

  // x ~ scale * q, |q| <= 127, by the rule for activations. Returns the scale.
  float (*quantize_head)(const float* x, int dim, int8_t* q);
  // One token's K or V of one head into position `slot` of a block: K [dim][16], V [16][dim].
  void (*store_k)(KvType type, const float* k, int dim, int slot, std::byte* block);
  void (*store_v)(KvType type, const float* v, int dim, int slot, std::byte* block);
  void (*attention_segment)(const AttentionTile& tile, int segment, AttentionPartial& out);
  // Merges `from` (of the next segment) into `into`, row by row.
  void (*attention_merge)(int num_rows, int v_dim, const AttentionPartial& from, AttentionPartial& into);
  // out[r] = o[r] / sum[r].
  void (*attention_finish)(int num_rows, int v_dim, const AttentionPartial& partial, float* const* out);
};

// In ascending order of speed.
enum class Isa : uint8_t { kScalar, kAvx2, kAvxVnni, kAvx512, kAvx512Vnni, kAmx };
inline constexpr Isa kAllIsas[] = {Isa::kScalar, Isa::kAvx2,       Isa::kAvxVnni,
                                   Isa::kAvx512, Isa::kAvx512Vnni, Isa::kAmx};

std::string_view isa_name(Isa isa);
// Whether this processor and operating system can run it.
bool isa_available(Isa isa);
Isa best_isa();
// The table of an available instruction set.
const Kernels& kernels(Isa isa);

// Float weights in panels of 16 outputs: F32 and F16 [inputs][16]; BF16 [inputs / 2][16][2], inputs padded
// with zeros to a multiple of 32.
constexpr int64_t float_panel_bytes(FloatType type, int64_t inputs) {
  return type == FloatType::kF32   ? inputs * 64
         : type == FloatType::kF16 ? inputs * 32
                                   : (inputs + 31) / 32 * 32 * 32;
}

}  // namespace tercet::backend
