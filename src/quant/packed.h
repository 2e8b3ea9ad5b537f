// Packed layouts: what every quantized weight becomes when it is loaded, so that a few kernels serve many
// formats.
//
// A weight of `outputs` rows and `inputs` columns is cut into panels of 16 output rows, and a panel into
// spans of up to 256 inputs. A span holds, for its chunks of 32 inputs:
//
//   codes  chunks * bits * 64 bytes, in bit planes (below)
//
//   sub    integer sub-scales of a span of 256 (layouts with sub-scales, below)
//
//   d      16 scales for each float block of the span, F16 or one byte
//
//   m      16 F16 minimums likewise (layouts with a minimum)
//
// and is padded to 64 bytes. Inside a chunk the inputs form 8 groups of 4; a group is 64 lanes, lane
// 4 * row + input % 4, as the byte dot products of AVX2 and AVX-512 want it. A code's bits lie in planes,
// which follow each other in this order:
//
//   4-bit plane  4 vectors of 64 bytes; vector v holds group v in its low and group v + 4 in its high nibbles
//
//   2-bit plane  2 vectors; vector v holds groups 4v .. 4v + 3, from the low bits up
//
//   1-bit plane  1 vector; bit g belongs to group g
//
//   8 bits       8 vectors, one a group
//
// A code of 5 bits has a 4-bit plane for its low bits and a 1-bit plane for the high one; 6 = 4 + 2, 3 = 2
// + 1.
//
// Sub-scales lie in vectors of 16 words, a word a row. A word holds the sub-blocks 4 i to 4 i + 3 in its
// bytes, the first one in the highest. kPair and kNibbles have four vectors, for 16 sub-blocks of 16 inputs;
// kScaleMin has three, for 8 sub-blocks of 32: scales 0 to 3 with two high bits of scales 4 to 7 above, the
// minimums likewise, and the low nibbles of scales 4 to 7 with those of the minimums above.
//
// Packing loses nothing: unpack_row returns the values of the format's definition, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace tercet::quant {

inline constexpr int kPanelRows = 16;
inline constexpr int kChunk = 32;
inline constexpr int kSpan = 256;

enum class SubScale : uint8_t {
  kNone,
  kPair,      // signed scales of 16 inputs
  kScaleMin,  // unsigned 6-bit scales and minimums of 32 inputs
  kNibbles,   // of 16 inputs: scale in the low nibble, minimum in the high one
};

// What a kernel is compiled for. value = d * scale * (code - zero) - m * minimum, where scale and minimum are
// 1 without sub-scales; `m` is stored with that sign. Codes are unsigned, signed when they have 8 bits, or
// indices into a table of signed values. Where `zero` is as large as any of a table's values, kernels add it
// to them, so that they are unsigned and small; where it is 0, they take them as they are.
struct PackedShape {
  int bits;
  int block;  // inputs that share d and m: 16, 32 or 256
  SubScale sub;
  int zero;
  bool has_min;
  bool has_table = false;
  bool e8m0 = false;  // d is a byte: half of 2^(d - 127)

  // Inlined, so that no copy which is compiled for one instruction set is shared
  // (tests/rules/isa_symbols.py).
  [[gnu::always_inline]] constexpr bool operator==(const PackedShape&) const = default;
  // Inputs that share an activation's scale.
  constexpr int activation_block() const { return block == kSpan ? kSpan : kChunk; }
  // Inputs that share a sub-scale.
  constexpr int sub_block() const { return sub == SubScale::kScaleMin ? 32 : 16; }
};

struct PackedLayout : PackedShape {
  const int8_t* table = nullptr;  // 16 values, of layouts with a table
  float factor = 1;               // d is stored divided by it; a power of two, 1 without a table
};

inline constexpr PackedShape kPackedShapes[] = {
    {4, 32, SubScale::kNone, 8, false},               // Q4_0
    {4, 32, SubScale::kNone, 0, true},                // Q4_1
    {5, 32, SubScale::kNone, 16, false},              // Q5_0
    {5, 32, SubScale::kNone, 0, true},                // Q5_1
    {8, 32, SubScale::kNone, 0, false},               // Q8_0
    {2, 256, SubScale::kNibbles, 0, true},            // Q2_K
    {3, 256, SubScale::kPair, 4, false},              // Q3_K
    {4, 256, SubScale::kScaleMin, 0, true},           // Q4_K
    {5, 256, SubScale::kScaleMin, 0, true},           // Q5_K
    {6, 256, SubScale::kPair, 32, false},             // Q6_K
    {4, 32, SubScale::kNone, 0, false, true},         // IQ4_NL
    {4, 32, SubScale::kNone, 12, false, true, true},  // MXFP4
    {4, 16, SubScale::kNone, 12, false, true},        // NVFP4
    {4, 256, SubScale::kPair, 0, false, true},        // IQ4_XS
    {4, 256, SubScale::kPair, 32, false, true},       // IQ3
    {3, 256, SubScale::kPair, 64, false, true},       // IQ1, IQ2
    {2, 256, SubScale::kNone, 1, false},              // TQ1_0, TQ2_0
    {2, 32, SubScale::kNone, 1, false},               // Q1_0, Q2_0
};

// The layout of a format, or nullptr when it has none (float types).
const PackedLayout* packed_layout(DType type);

// Where the parts of a span of `chunks` chunks begin, in bytes from its start.
struct SpanOffsets {
  int codes_per_chunk;
  int sub;
  int d;
  int m;
  int size;
};
constexpr SpanOffsets span_offsets(const PackedShape& shape, int chunks) {
  const int blocks = chunks * kChunk / shape.block;
  SpanOffsets at{};
  at.codes_per_chunk = shape.bits * 64;
  at.sub = chunks * at.codes_per_chunk;
  at.d = at.sub + (shape.sub == SubScale::kNone ? 0 : shape.sub == SubScale::kScaleMin ? 192 : 256);
  at.m = at.d + blocks * kPanelRows * (shape.e8m0 ? 1 : 2);
  const int end = at.m + (shape.has_min ? blocks * kPanelRows * 2 : 0);
  at.size = (end + 63) / 64 * 64;
  return at;
}
constexpr int span_chunks(int64_t inputs, int64_t span) {
  const int64_t left = inputs - span * kSpan;
  return static_cast<int>((left < kSpan ? left : kSpan) / kChunk);
}
constexpr int64_t num_spans(int64_t inputs) { return (inputs + kSpan - 1) / kSpan; }
constexpr int64_t num_panels(int64_t outputs) { return (outputs + kPanelRows - 1) / kPanelRows; }

// Bytes of one panel; `inputs` is a multiple of the format's block.
int64_t panel_bytes(const PackedShape& shape, int64_t inputs);

// Packs up to 16 rows into one panel. rows[r] is a row of `inputs` values in `type`'s own blocks; a nullptr
// row is packed as zeros.
void pack_panel(DType type, std::span<const std::byte* const, kPanelRows> rows, int64_t inputs,
                std::byte* panel);

// The code of input k (within the span) and row r, less the zero, or what the table has for it.
int packed_code(const PackedLayout& layout, const std::byte* span, int k, int row);
// Scale and minimum of sub-block i (within the span).
struct PackedSub {
  int scale, minimum;
};
PackedSub packed_sub(const PackedLayout& layout, const std::byte* span, const SpanOffsets& at, int i,
                     int row);
// d (times the factor) and m of float block i (within the span).
struct PackedScale {
  float d, m;
};
PackedScale packed_scale(const PackedLayout& layout, const std::byte* span, const SpanOffsets& at, int i,
                         int row);

// Dequantizes row `row` of a panel into out[inputs].
void unpack_row(const PackedLayout& layout, const std::byte* panel, int64_t inputs, int row, float* out);

}  // namespace tercet::quant
