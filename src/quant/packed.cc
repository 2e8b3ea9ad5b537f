#include "quant/packed.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/float16.h"
#include "quant/ggml_codes.h"

namespace tercet::quant {
namespace {

constexpr Half kSignBit = 0x8000;

// One float block of one row in the terms of the packed layouts.
struct RowBlock {
  uint8_t codes[kSpan];
  uint8_t sub[kSpan / kChunk][2];
  Half d;
  Half m;
};

void scales_of(const BlockQ4_0& in, RowBlock& out) { out.d = in.d; }
void scales_of(const BlockQ5_0& in, RowBlock& out) { out.d = in.d; }
void scales_of(const BlockQ8_0& in, RowBlock& out) { out.d = in.d; }
// The file adds its minimum, the layout subtracts it.
void scales_of(const BlockQ4_1& in, RowBlock& out) { out.d = in.d, out.m = in.m ^ kSignBit; }
void scales_of(const BlockQ5_1& in, RowBlock& out) { out.d = in.d, out.m = in.m ^ kSignBit; }

void scales_of(const BlockQ2_K& in, RowBlock& out) {
  out.d = in.d, out.m = in.dmin;
  std::memcpy(out.sub, in.scales, sizeof in.scales);
}
void scales_of(const BlockQ3_K& in, RowBlock& out) {
  out.d = in.d;
  for (int s = 0; s < 16; ++s) out.sub[s / 2][s % 2] = static_cast<uint8_t>(q3_k_scale(in, s));
}
void scales_of(const BlockQ6_K& in, RowBlock& out) {
  out.d = in.d;
  std::memcpy(out.sub, in.scales, sizeof in.scales);
}
template <class Block>
void scales_and_minimums_of(const Block& in, RowBlock& out) {
  out.d = in.d, out.m = in.dmin;
  for (int s = 0; s < 8; ++s) {
    const ScaleMin pair = q4_k_scale_min(in.scales, s);
    out.sub[s][0] = static_cast<uint8_t>(pair.scale);
    out.sub[s][1] = static_cast<uint8_t>(pair.min);
  }
}
void scales_of(const BlockQ4_K& in, RowBlock& out) { scales_and_minimums_of(in, out); }
void scales_of(const BlockQ5_K& in, RowBlock& out) { scales_and_minimums_of(in, out); }

// A format: its layout, and how one of its blocks reads.
struct Format {
  DType type;
  PackedLayout layout;
  void (*read)(const std::byte* block, RowBlock& out);
};

template <class Block>
void read_block(const std::byte* bytes, RowBlock& out) {
  Block block;
  std::memcpy(&block, bytes, sizeof block);
  codes_of(block, out.codes);
  scales_of(block, out);
}

constexpr Format kFormats[] = {
    {DType::kQ4_0, kPackedQ4_0, read_block<BlockQ4_0>}, {DType::kQ4_1, kPackedQ4_1, read_block<BlockQ4_1>},
    {DType::kQ5_0, kPackedQ5_0, read_block<BlockQ5_0>}, {DType::kQ5_1, kPackedQ5_1, read_block<BlockQ5_1>},
    {DType::kQ8_0, kPackedQ8_0, read_block<BlockQ8_0>}, {DType::kQ2_K, kPackedQ2_K, read_block<BlockQ2_K>},
    {DType::kQ3_K, kPackedQ3_K, read_block<BlockQ3_K>}, {DType::kQ4_K, kPackedQ4_K, read_block<BlockQ4_K>},
    {DType::kQ5_K, kPackedQ5_K, read_block<BlockQ5_K>}, {DType::kQ6_K, kPackedQ6_K, read_block<BlockQ6_K>},
};

const Format* find_format(DType type) {
  const auto* found =
      std::find_if(std::begin(kFormats), std::end(kFormats), [&](const auto& f) { return f.type == type; });
  return found == std::end(kFormats) ? nullptr : found;
}

// Writes one row's 32 codes into the planes of a chunk, four codes (a group) at a time.
void pack_chunk(int bits, const uint8_t* codes, int row, std::byte* chunk) {
  uint32_t group[8];
  std::memcpy(group, codes, sizeof group);
  const auto put = [&](int vector, uint32_t word) { std::memcpy(chunk + vector * 64 + row * 4, &word, 4); };
  if (bits == 8) {
    for (int g = 0; g < 8; ++g) put(g, group[g]);
    return;
  }
  int vector = 0;
  if (bits >= 4) {
    for (int v = 0; v < 4; ++v) put(vector++, (group[v] & 0x0f0f0f0f) | (group[v + 4] & 0x0f0f0f0f) << 4);
    for (uint32_t& word : group) word = word >> 4 & 0x0f0f0f0f;
  }
  if (bits == 2 || bits == 3 || bits == 6) {
    for (int v = 0; v < 2; ++v) {
      uint32_t word = 0;
      for (int j = 0; j < 4; ++j) word |= (group[v * 4 + j] & 0x03030303) << (2 * j);
      put(vector++, word);
    }
    for (uint32_t& word : group) word = word >> 2 & 0x03030303;
  }
  if (bits == 3 || bits == 5) {
    uint32_t word = 0;
    for (int g = 0; g < 8; ++g) word |= (group[g] & 0x01010101) << g;
    put(vector, word);
  }
}

// Writes float block `block` of a span: its codes, sub-scales, d and m of one row.
void pack_row_block(const PackedLayout& layout, const SpanOffsets& at, const RowBlock& in, int block, int row,
                    std::byte* span) {
  const int chunks = layout.block / kChunk;
  for (int c = 0; c < chunks; ++c) {
    const int chunk = block * chunks + c;
    pack_chunk(layout.bits, in.codes + c * kChunk, row, span + chunk * at.codes_per_chunk);
    if (layout.sub != SubScale::kNone) std::memcpy(span + at.sub + chunk * 32 + row * 2, in.sub[c], 2);
  }
  const int lane = (block * kPanelRows + row) * 2;
  std::memcpy(span + at.d + lane, &in.d, 2);
  if (layout.has_min) std::memcpy(span + at.m + lane, &in.m, 2);
}

float half_at(const std::byte* p) {
  Half bits;
  std::memcpy(&bits, p, 2);
  return f16_to_f32(bits);
}

}  // namespace

const PackedLayout* packed_layout(DType type) {
  const Format* format = find_format(type);
  return format == nullptr ? nullptr : &format->layout;
}

int64_t panel_bytes(const PackedLayout& layout, int64_t inputs) {
  TERCET_CHECK(inputs % layout.block == 0);
  int64_t bytes = 0;
  for (int64_t s = 0; s < num_spans(inputs); ++s) bytes += span_offsets(layout, span_chunks(inputs, s)).size;
  return bytes;
}

void pack_panel(DType type, std::span<const std::byte* const, kPanelRows> rows, int64_t inputs,
                std::byte* panel) {
  const Format* format = find_format(type);
  TERCET_CHECK(format != nullptr);
  const PackedLayout& layout = format->layout;
  const int block_bytes = dtype_info(type).block_bytes;
  const auto size = static_cast<size_t>(panel_bytes(layout, inputs));
  std::memset(panel, 0, size);
  int64_t source = 0;
  RowBlock block{};
  for (int64_t s = 0; s < num_spans(inputs); ++s) {
    const int chunks = span_chunks(inputs, s);
    const SpanOffsets at = span_offsets(layout, chunks);
    const int blocks = layout.block == kSpan ? 1 : chunks;
    for (int b = 0; b < blocks; ++b, source += block_bytes) {
      for (int row = 0; row < kPanelRows; ++row) {
        if (rows[static_cast<size_t>(row)] == nullptr) continue;
        format->read(rows[static_cast<size_t>(row)] + source, block);
        pack_row_block(layout, at, block, b, row, panel);
      }
    }
    panel += at.size;
  }
}

int packed_code(const PackedLayout& layout, const std::byte* span, int k, int row) {
  const int g = k % kChunk / 4, lane = row * 4 + k % 4;
  const std::byte* plane = span + k / kChunk * layout.bits * 64;
  const auto byte = [&](int vector) { return static_cast<int>(plane[vector * 64 + lane]); };
  if (layout.bits == 8) return static_cast<int8_t>(byte(g));
  int code = 0, low_bits = 0;
  if (layout.bits >= 4) {
    code = byte(g % 4) >> (g / 4 * 4) & 15;
    low_bits = 4;
    plane += 256;
  }
  if (layout.bits == 2 || layout.bits == 3 || layout.bits == 6) {
    code |= (byte(g / 4) >> (g % 4 * 2) & 3) << low_bits;
    low_bits += 2;
    plane += 128;
  }
  if (layout.bits == 3 || layout.bits == 5) code |= (byte(0) >> g & 1) << low_bits;
  return code;
}

void unpack_row(const PackedLayout& layout, const std::byte* panel, int64_t inputs, int row, float* out) {
  for (int64_t s = 0; s < num_spans(inputs); ++s) {
    const int chunks = span_chunks(inputs, s);
    const SpanOffsets at = span_offsets(layout, chunks);
    for (int k = 0; k < chunks * kChunk; ++k) {
      const int lane = (k / layout.block * kPanelRows + row) * 2;
      const std::byte* sub = panel + at.sub + k / kChunk * 32 + row * 2;
      const int half = k % kChunk / 16;
      float scale = half_at(panel + at.d + lane);
      float minimum = layout.has_min ? half_at(panel + at.m + lane) : 0.0f;
      if (layout.sub == SubScale::kPair) scale *= static_cast<float>(static_cast<int8_t>(sub[half]));
      if (layout.sub == SubScale::kScaleMin) {
        scale *= static_cast<float>(sub[0]);
        minimum *= static_cast<float>(sub[1]);
      }
      if (layout.sub == SubScale::kNibbles) {
        scale *= static_cast<float>(static_cast<int>(sub[half]) & 15);
        minimum *= static_cast<float>(static_cast<int>(sub[half]) >> 4);
      }
      const float value = scale * static_cast<float>(packed_code(layout, panel, k, row) - layout.zero);
      out[s * kSpan + k] = layout.has_min ? value - minimum : value;
    }
    panel += at.size;
  }
}

}  // namespace tercet::quant
