#include "quant/packed_format.h"

#include <algorithm>
#include <cstring>

#include "base/float16.h"
#include "quant/ggml_codes.h"
#include "quant/ggml_codes_iq.h"

namespace tercet::quant {
namespace {

constexpr Half kSignBit = 0x8000;

template <class Block>
void read_d(const Block& in, FormatBlock& out) {
  codes_of(in, out.codes);
  out.d[0] = in.d;
}
// The file adds its minimum, the layout subtracts it.
template <class Block>
void read_d_m(const Block& in, FormatBlock& out) {
  read_d(in, out);
  out.m[0] = in.m ^ kSignBit;
}
// A d for each chunk of 32.
template <class Block>
void read_wide(const Block& in, FormatBlock& out) {
  codes_of(in, out.codes);
  std::fill(std::begin(out.d), std::end(out.d), in.d);
}

void read_mxfp4(const BlockMXFP4& in, FormatBlock& out) {
  codes_of(in, out.codes);
  out.d[0] = in.e;
}
void read_nvfp4(const BlockNVFP4& in, FormatBlock& out) {
  codes_of(in, out.codes);
  for (int i = 0; i < 4; ++i) out.d[i] = f32_to_f16(half_ue4m3_to_f32(in.d[i]));
}

void read_q2_k(const BlockQ2_K& in, FormatBlock& out) {
  read_d(in, out);
  out.m[0] = in.dmin;
  std::memcpy(out.sub, in.scales, sizeof in.scales);
}
void read_q3_k(const BlockQ3_K& in, FormatBlock& out) {
  read_d(in, out);
  for (int s = 0; s < 16; ++s) out.sub[s] = static_cast<uint8_t>(q3_k_scale(in, s));
}
void read_q6_k(const BlockQ6_K& in, FormatBlock& out) {
  read_d(in, out);
  std::memcpy(out.sub, in.scales, sizeof in.scales);
}
template <class Block>
void read_scale_min(const Block& in, FormatBlock& out) {
  read_d(in, out);
  out.m[0] = in.dmin;
  for (int s = 0; s < 8; ++s) {
    const ScaleMin pair = q4_k_scale_min(in.scales, s);
    out.sub[s] = static_cast<uint8_t>(pair.scale);
    out.minimum[s] = static_cast<uint8_t>(pair.min);
  }
}
template <class Block>
void read_table(const Block& in, FormatBlock& out) {
  TableBlock block;
  read_table_block(in, block);
  std::memcpy(out.codes, block.codes, sizeof block.codes);
  std::memcpy(out.sub, block.scales, sizeof block.scales);
  out.d[0] = block.d;
}

template <class Block, void (*read_fields)(const Block&, FormatBlock&)>
void read(const std::byte* bytes, FormatBlock& out) {
  Block block;
  std::memcpy(&block, bytes, sizeof block);
  read_fields(block, out);
}

// The shape with this comment in packed.h.
constexpr PackedShape shape(int bits, int block, SubScale sub, int zero, bool has_min) {
  return {bits, block, sub, zero, has_min};
}
constexpr PackedLayout table_layout(int bits, int block, SubScale sub, int zero, const int8_t* table,
                                    float factor = 1, bool e8m0 = false) {
  return {{bits, block, sub, zero, false, true, e8m0}, table, factor};
}
constexpr PackedLayout i_quant(int bits, int zero, const CodeTable& table) {
  return table_layout(bits, 256, SubScale::kPair, zero, table.values, table.factor);
}

constexpr SubScale kNone = SubScale::kNone;
constexpr PackedLayout kTernary = {shape(2, 256, kNone, 1, false)},
                       kTwoBits = {shape(2, 32, kNone, 1, false)};

constexpr Format kFormats[] = {
    {DType::kQ4_0, {shape(4, 32, kNone, 8, false)}, read<BlockQ4_0, read_d>},
    {DType::kQ4_1, {shape(4, 32, kNone, 0, true)}, read<BlockQ4_1, read_d_m>},
    {DType::kQ5_0, {shape(5, 32, kNone, 16, false)}, read<BlockQ5_0, read_d>},
    {DType::kQ5_1, {shape(5, 32, kNone, 0, true)}, read<BlockQ5_1, read_d_m>},
    {DType::kQ8_0, {shape(8, 32, kNone, 0, false)}, read<BlockQ8_0, read_d>},
    {DType::kQ2_K, {shape(2, 256, SubScale::kNibbles, 0, true)}, read<BlockQ2_K, read_q2_k>},
    {DType::kQ3_K, {shape(3, 256, SubScale::kPair, 4, false)}, read<BlockQ3_K, read_q3_k>},
    {DType::kQ4_K, {shape(4, 256, SubScale::kScaleMin, 0, true)}, read<BlockQ4_K, read_scale_min>},
    {DType::kQ5_K, {shape(5, 256, SubScale::kScaleMin, 0, true)}, read<BlockQ5_K, read_scale_min>},
    {DType::kQ6_K, {shape(6, 256, SubScale::kPair, 32, false)}, read<BlockQ6_K, read_q6_k>},
    {DType::kIQ1_S, i_quant(3, 64, kIQ1Table), read<BlockIQ1_S, read_table>},
    {DType::kIQ1_M, i_quant(3, 64, kIQ1Table), read<BlockIQ1_M, read_table>},
    {DType::kIQ2_XXS, i_quant(3, 64, kIQ2Table), read<BlockIQ2_XXS, read_table>},
    {DType::kIQ2_XS, i_quant(3, 64, kIQ2Table), read<BlockIQ2_XS, read_table>},
    {DType::kIQ2_S, i_quant(3, 64, kIQ2Table), read<BlockIQ2_S, read_table>},
    {DType::kIQ3_XXS, i_quant(4, 32, kIQ3_XXSTable), read<BlockIQ3_XXS, read_table>},
    {DType::kIQ3_S, i_quant(4, 32, kIQ3_STable), read<BlockIQ3_S, read_table>},
    {DType::kIQ4_XS, i_quant(4, 0, kIQ4Table), read<BlockIQ4_XS, read_table>},
    {DType::kIQ4_NL, table_layout(4, 32, kNone, 0, kIQ4Table.values), read<BlockIQ4_NL, read_d>},
    {DType::kMXFP4, table_layout(4, 32, kNone, 12, kFP4Values, 1, true), read<BlockMXFP4, read_mxfp4>},
    {DType::kNVFP4, table_layout(4, 16, kNone, 12, kFP4Values), read<BlockNVFP4, read_nvfp4>},
    {DType::kTQ1_0, kTernary, read<BlockTQ1_0, read_d>},
    {DType::kTQ2_0, kTernary, read<BlockTQ2_0, read_d>},
    {DType::kQ1_0, kTwoBits, read<BlockQ1_0, read_wide>},
    {DType::kQ2_0, kTwoBits, read<BlockQ2_0, read_wide>},
};

}  // namespace

const Format* find_format(DType type) {
  const auto* found =
      std::find_if(std::begin(kFormats), std::end(kFormats), [&](const auto& f) { return f.type == type; });
  return found == std::end(kFormats) ? nullptr : found;
}

const PackedLayout* packed_layout(DType type) {
  const Format* format = find_format(type);
  return format == nullptr ? nullptr : &format->layout;
}

}  // namespace tercet::quant
