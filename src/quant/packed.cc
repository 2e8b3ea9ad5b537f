#include "quant/packed.h"

#include <cstring>

#include "base/check.h"
#include "base/float16.h"
#include "quant/ggml_blocks.h"
#include "quant/packed_format.h"

namespace tercet::quant {
namespace {

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

// Byte j (the highest is 0) of row `row`'s word in a vector of sub-scales.
constexpr int sub_at(int vector, int row, int j) { return vector * 64 + row * 4 + 3 - j; }

void pack_sub(SubScale kind, const FormatBlock& in, int row, std::byte* sub) {
  const auto put = [&](int vector, int j, int value) {
    sub[sub_at(vector, row, j)] = static_cast<std::byte>(value);
  };
  if (kind == SubScale::kScaleMin) {
    for (int j = 0; j < 4; ++j) {
      put(0, j, in.sub[j] | (in.sub[4 + j] >> 4) << 6);
      put(1, j, in.minimum[j] | (in.minimum[4 + j] >> 4) << 6);
      put(2, j, (in.sub[4 + j] & 15) | (in.minimum[4 + j] & 15) << 4);
    }
    return;
  }
  for (int i = 0; i < 16; ++i) put(i / 4, i % 4, in.sub[i]);
}

// Writes one row's block of the file, which begins `chunk` chunks into the span.
void pack_row_block(const PackedLayout& layout, const SpanOffsets& at, const FormatBlock& in, int elements,
                    int chunk, int row, std::byte* span) {
  for (int c = 0; c < elements / kChunk; ++c)
    pack_chunk(layout.bits, in.codes + c * kChunk, row, span + (chunk + c) * at.codes_per_chunk);
  if (layout.sub != SubScale::kNone) pack_sub(layout.sub, in, row, span + at.sub);
  for (int b = 0; b < elements / layout.block; ++b) {
    const int lane = (chunk * kChunk / layout.block + b) * kPanelRows + row;
    if (layout.e8m0) {
      span[at.d + lane] = static_cast<std::byte>(in.d[b]);
    } else {
      std::memcpy(span + at.d + lane * 2, &in.d[b], 2);
    }
    if (layout.has_min) std::memcpy(span + at.m + lane * 2, &in.m[b], 2);
  }
}

float half_at(const std::byte* p) {
  Half bits;
  std::memcpy(&bits, p, 2);
  return f16_to_f32(bits);
}

}  // namespace

int64_t panel_bytes(const PackedShape& shape, int64_t inputs) {
  TERCET_CHECK(inputs % shape.activation_block() == 0);
  int64_t bytes = 0;
  for (int64_t s = 0; s < num_spans(inputs); ++s) bytes += span_offsets(shape, span_chunks(inputs, s)).size;
  return bytes;
}

void pack_panel(DType type, std::span<const std::byte* const, kPanelRows> rows, int64_t inputs,
                std::byte* panel) {
  const Format* format = find_format(type);
  TERCET_CHECK(format != nullptr);
  const PackedLayout& layout = format->layout;
  const DTypeInfo& info = dtype_info(type);
  std::memset(panel, 0, static_cast<size_t>(panel_bytes(layout, inputs)));
  int64_t source = 0;
  FormatBlock block{};
  for (int64_t s = 0; s < num_spans(inputs); ++s) {
    const int chunks = span_chunks(inputs, s);
    const SpanOffsets at = span_offsets(layout, chunks);
    for (int chunk = 0; chunk < chunks; chunk += info.block_elements / kChunk, source += info.block_bytes) {
      for (int row = 0; row < kPanelRows; ++row) {
        if (rows[static_cast<size_t>(row)] == nullptr) continue;
        format->read(rows[static_cast<size_t>(row)] + source, block);
        pack_row_block(layout, at, block, info.block_elements, chunk, row, panel);
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
  return layout.has_table ? layout.table[code] : code - layout.zero;
}

PackedSub packed_sub(const PackedLayout& layout, const std::byte* span, const SpanOffsets& at, int i,
                     int row) {
  const auto byte = [&](int vector) { return static_cast<int>(span[at.sub + sub_at(vector, row, i % 4)]); };
  switch (layout.sub) {
    case SubScale::kNone: return {1, 1};
    case SubScale::kPair: return {static_cast<int8_t>(byte(i / 4)), 0};
    case SubScale::kNibbles: return {byte(i / 4) & 15, byte(i / 4) >> 4};
    case SubScale::kScaleMin:
      if (i < 4) return {byte(0) & 63, byte(1) & 63};
      return {(byte(2) & 15) | byte(0) >> 6 << 4, byte(2) >> 4 | byte(1) >> 6 << 4};
  }
  return {};
}

PackedScale packed_scale(const PackedLayout& layout, const std::byte* span, const SpanOffsets& at, int i,
                         int row) {
  const int lane = i * kPanelRows + row;
  const float d = layout.e8m0 ? half_e8m0_to_f32(static_cast<uint8_t>(span[at.d + lane]))
                              : half_at(span + at.d + lane * 2) * layout.factor;
  return {d, layout.has_min ? half_at(span + at.m + lane * 2) : 0.0f};
}

void unpack_row(const PackedLayout& layout, const std::byte* panel, int64_t inputs, int row, float* out) {
  for (int64_t s = 0; s < num_spans(inputs); ++s) {
    const int chunks = span_chunks(inputs, s);
    const SpanOffsets at = span_offsets(layout, chunks);
    for (int begin = 0; begin < chunks * kChunk; begin += 16) {
      const PackedSub sub = packed_sub(layout, panel, at, begin / layout.sub_block(), row);
      const PackedScale block = packed_scale(layout, panel, at, begin / layout.block, row);
      const float scale = block.d * static_cast<float>(sub.scale);
      const float minimum = block.m * static_cast<float>(sub.minimum);
      for (int k = begin; k < begin + 16; ++k) {
        const float value = scale * static_cast<float>(packed_code(layout, panel, k, row));
        out[s * kSpan + k] = layout.has_min ? value - minimum : value;
      }
    }
    panel += at.size;
  }
}

}  // namespace tercet::quant
