// Packed layouts: what every quantized weight becomes when it is loaded, so that a few kernels serve many
// formats.
//
// A weight of `outputs` rows and `inputs` columns is cut into panels of 16 output rows, and a panel into
// spans of up to 256 inputs. A span holds, for its chunks of 32 inputs:
//
//   codes  chunks * bits * 64 bytes, in bit planes (below)
//
//   sub    chunks * 32 bytes: two sub-scale bytes for each of the 16 rows (layouts with sub-scales)
//
//   d      16 F16 scales for each float block of the span; a block is 32 or 256 inputs
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
// + 1. Packing loses nothing: unpack_row returns the values of the format's definition, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace tercet::quant {

inline constexpr int kPanelRows = 16;
inline constexpr int kChunk = 32;
inline constexpr int kSpan = 256;

// What the two sub-scale bytes of a row and chunk mean.
enum class SubScale : uint8_t {
  kNone,
  kPair,      // signed scales of the two 16-input halves
  kScaleMin,  // unsigned scale and minimum of the chunk
  kNibbles,   // for each 16-input half: scale in the low nibble, minimum in the high one
};

// value = d * scale * (code - zero) - m * minimum, where scale is 1 and minimum is 1 without sub-scales; `m`
// is stored with that sign. Codes are unsigned, or signed when they have 8 bits.
struct PackedLayout {
  int bits;
  int block;  // inputs that share d, m and the activation's scale: 32 or 256
  SubScale sub;
  int zero;
  bool has_min;

  constexpr bool operator==(const PackedLayout&) const = default;
};

inline constexpr PackedLayout kPackedQ4_0{4, 32, SubScale::kNone, 8, false};
inline constexpr PackedLayout kPackedQ4_1{4, 32, SubScale::kNone, 0, true};
inline constexpr PackedLayout kPackedQ5_0{5, 32, SubScale::kNone, 16, false};
inline constexpr PackedLayout kPackedQ5_1{5, 32, SubScale::kNone, 0, true};
inline constexpr PackedLayout kPackedQ8_0{8, 32, SubScale::kNone, 0, false};
inline constexpr PackedLayout kPackedQ2_K{2, 256, SubScale::kNibbles, 0, true};
inline constexpr PackedLayout kPackedQ3_K{3, 256, SubScale::kPair, 4, false};
inline constexpr PackedLayout kPackedQ4_K{4, 256, SubScale::kScaleMin, 0, true};
inline constexpr PackedLayout kPackedQ5_K{5, 256, SubScale::kScaleMin, 0, true};
inline constexpr PackedLayout kPackedQ6_K{6, 256, SubScale::kPair, 32, false};

// All of them; kernels instantiate one loop for each.
inline constexpr PackedLayout kPackedLayouts[] = {kPackedQ4_0, kPackedQ4_1, kPackedQ5_0, kPackedQ5_1,
                                                  kPackedQ8_0, kPackedQ2_K, kPackedQ3_K, kPackedQ4_K,
                                                  kPackedQ5_K, kPackedQ6_K};

// The layout of a format, or nullptr when it has none (float types, formats not supported yet).
const PackedLayout* packed_layout(DType type);

// Where the parts of a span of `chunks` chunks begin, in bytes from its start.
struct SpanOffsets {
  int codes_per_chunk;
  int sub;
  int d;
  int m;
  int size;
};
constexpr SpanOffsets span_offsets(const PackedLayout& layout, int chunks) {
  const int blocks = layout.block == kSpan ? 1 : chunks;
  SpanOffsets at{};
  at.codes_per_chunk = layout.bits * 64;
  at.sub = chunks * at.codes_per_chunk;
  at.d = at.sub + (layout.sub == SubScale::kNone ? 0 : chunks * 32);
  at.m = at.d + blocks * kPanelRows * 2;
  const int end = at.m + (layout.has_min ? blocks * kPanelRows * 2 : 0);
  at.size = (end + 63) / 64 * 64;
  return at;
}
constexpr int span_chunks(int64_t inputs, int64_t span) {
  const int64_t left = inputs - span * kSpan;
  return static_cast<int>((left < kSpan ? left : kSpan) / kChunk);
}
constexpr int64_t num_spans(int64_t inputs) { return (inputs + kSpan - 1) / kSpan; }
constexpr int64_t num_panels(int64_t outputs) { return (outputs + kPanelRows - 1) / kPanelRows; }

// Bytes of one panel; `inputs` is a multiple of the layout's block.
int64_t panel_bytes(const PackedLayout& layout, int64_t inputs);

// Packs up to 16 rows into one panel. rows[r] is a row of `inputs` values in `type`'s own blocks; a nullptr
// row is packed as zeros.
void pack_panel(DType type, std::span<const std::byte* const, kPanelRows> rows, int64_t inputs,
                std::byte* panel);

// The code of input k (within the span) and row r; sign-extended when the layout's codes are signed.
int packed_code(const PackedLayout& layout, const std::byte* span, int k, int row);

// Dequantizes row `row` of a panel into out[inputs].
void unpack_row(const PackedLayout& layout, const std::byte* panel, int64_t inputs, int row, float* out);

}  // namespace tercet::quant
