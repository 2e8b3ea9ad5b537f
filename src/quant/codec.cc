#include "quant/codec.h"

#include <array>
#include <cstring>

#include "base/check.h"
#include "base/float16.h"
#include "quant/codec_iq.h"
#include "quant/ggml_codes.h"

namespace tercet::quant {
namespace {

void f16(const Half& value, float* out) { *out = f16_to_f32(value); }
void bf16(const uint16_t& value, float* out) { *out = bf16_to_f32(value); }
void f32(const float& value, float* out) { *out = value; }

void q4_0(const BlockQ4_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>((block.qs[i] & 15) - 8);
    out[i + 16] = d * static_cast<float>((block.qs[i] >> 4) - 8);
  }
}

void q4_1(const BlockQ4_1& block, float* out) {
  const float d = f16_to_f32(block.d), m = f16_to_f32(block.m);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(block.qs[i] & 15) + m;
    out[i + 16] = d * static_cast<float>(block.qs[i] >> 4) + m;
  }
}

// The fifth bit of element i, at its place.
int fifth_bit(const uint8_t qh[4], int i) { return (qh[i / 8] >> (i % 8) & 1) << 4; }

void q5_0(const BlockQ5_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(((block.qs[i] & 15) | fifth_bit(block.qh, i)) - 16);
    out[i + 16] = d * static_cast<float>(((block.qs[i] >> 4) | fifth_bit(block.qh, i + 16)) - 16);
  }
}

void q5_1(const BlockQ5_1& block, float* out) {
  const float d = f16_to_f32(block.d), m = f16_to_f32(block.m);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>((block.qs[i] & 15) | fifth_bit(block.qh, i)) + m;
    out[i + 16] = d * static_cast<float>((block.qs[i] >> 4) | fifth_bit(block.qh, i + 16)) + m;
  }
}

void q8_0(const BlockQ8_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(block.qs[i]);
}

void q2_k(const BlockQ2_K& block, float* out) {
  const float d = f16_to_f32(block.d), dmin = f16_to_f32(block.dmin);
  for (int i = 0; i < kSuperBlock; ++i) {
    const uint8_t packed = block.scales[i / 16];
    const float scale = d * static_cast<float>(packed & 15), min = dmin * static_cast<float>(packed >> 4);
    out[i] = scale * static_cast<float>(two_bits(block.qs, i)) - min;
  }
}

void q3_k(const BlockQ3_K& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < kSuperBlock; ++i) {
    const float scale = d * static_cast<float>(q3_k_scale(block, i / 16));
    const int high = block.hmask[i % 32] >> (i / 32) & 1;
    out[i] = scale * static_cast<float>(two_bits(block.qs, i) - (high ? 0 : 4));
  }
}

void q4_k(const BlockQ4_K& block, float* out) {
  const float d = f16_to_f32(block.d), dmin = f16_to_f32(block.dmin);
  for (int i = 0; i < kSuperBlock; ++i) {
    const int s = i / 32;
    const auto [scale, min] = q4_k_scale_min(block.scales, s);
    const int q = block.qs[s / 2 * 32 + i % 32] >> (s % 2 * 4) & 15;
    out[i] = d * static_cast<float>(scale) * static_cast<float>(q) - dmin * static_cast<float>(min);
  }
}

void q5_k(const BlockQ5_K& block, float* out) {
  const float d = f16_to_f32(block.d), dmin = f16_to_f32(block.dmin);
  for (int i = 0; i < kSuperBlock; ++i) {
    const int s = i / 32;
    const auto [scale, min] = q4_k_scale_min(block.scales, s);
    const int q = (block.qs[s / 2 * 32 + i % 32] >> (s % 2 * 4) & 15) | (block.qh[i % 32] >> s & 1) << 4;
    out[i] = d * static_cast<float>(scale) * static_cast<float>(q) - dmin * static_cast<float>(min);
  }
}

void q6_k(const BlockQ6_K& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < kSuperBlock; ++i) {
    const int half = i / 128, j = i % 128 / 32, l = i % 32;
    const int low = block.ql[64 * half + 32 * (j % 2) + l] >> (4 * (j / 2)) & 15;
    const int high = block.qh[32 * half + l] >> (2 * j) & 3;
    out[i] = d * static_cast<float>(block.scales[i / 16]) * static_cast<float>((low | high << 4) - 32);
  }
}

// The types that are d * value(code).
template <class Block, int kElements>
std::array<uint8_t, kElements> codes(const Block& block) {
  std::array<uint8_t, kElements> out;
  codes_of(block, out.data());
  return out;
}

// d * (code - 1).
template <class Block, int kElements>
void less_one(const Block& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (const uint8_t code : codes<Block, kElements>(block)) *out++ = d * static_cast<float>(code - 1);
}

void mxfp4(const BlockMXFP4& block, float* out) {
  const float d = half_e8m0_to_f32(block.e);
  for (const uint8_t code : codes<BlockMXFP4, kBlock>(block))
    *out++ = d * static_cast<float>(kFP4Values[code]);
}

void nvfp4(const BlockNVFP4& block, float* out) {
  const auto code = codes<BlockNVFP4, 64>(block);
  for (size_t i = 0; i < 64; ++i)
    out[i] = half_ue4m3_to_f32(block.d[i / 16]) * static_cast<float>(kFP4Values[code[i]]);
}

using RowFunction = void (*)(const std::byte* blocks, float* out, int64_t n);

template <class Block, int kElements, void (*decode)(const Block&, float*)>
void row(const std::byte* blocks, float* out, int64_t n) {
  for (int64_t i = 0; i < n; i += kElements, blocks += sizeof(Block)) {
    Block block;
    std::memcpy(&block, blocks, sizeof block);
    decode(block, out + i);
  }
}

// nullptr for a type without real values.
RowFunction row_function(DType type) {
  switch (type) {
    case DType::kF32: return row<float, 1, f32>;
    case DType::kF16: return row<uint16_t, 1, f16>;
    case DType::kBF16: return row<uint16_t, 1, bf16>;
    case DType::kQ4_0: return row<BlockQ4_0, kBlock, q4_0>;
    case DType::kQ4_1: return row<BlockQ4_1, kBlock, q4_1>;
    case DType::kQ5_0: return row<BlockQ5_0, kBlock, q5_0>;
    case DType::kQ5_1: return row<BlockQ5_1, kBlock, q5_1>;
    case DType::kQ8_0: return row<BlockQ8_0, kBlock, q8_0>;
    case DType::kQ2_K: return row<BlockQ2_K, kSuperBlock, q2_k>;
    case DType::kQ3_K: return row<BlockQ3_K, kSuperBlock, q3_k>;
    case DType::kQ4_K: return row<BlockQ4_K, kSuperBlock, q4_k>;
    case DType::kQ5_K: return row<BlockQ5_K, kSuperBlock, q5_k>;
    case DType::kQ6_K: return row<BlockQ6_K, kSuperBlock, q6_k>;
    case DType::kIQ1_S: return row<BlockIQ1_S, kSuperBlock, iq1_s>;
    case DType::kIQ1_M: return row<BlockIQ1_M, kSuperBlock, iq1_m>;
    case DType::kIQ2_XXS: return row<BlockIQ2_XXS, kSuperBlock, iq2_xxs>;
    case DType::kIQ2_XS: return row<BlockIQ2_XS, kSuperBlock, iq2_xs>;
    case DType::kIQ2_S: return row<BlockIQ2_S, kSuperBlock, iq2_s>;
    case DType::kIQ3_XXS: return row<BlockIQ3_XXS, kSuperBlock, iq3_xxs>;
    case DType::kIQ3_S: return row<BlockIQ3_S, kSuperBlock, iq3_s>;
    case DType::kIQ4_NL: return row<BlockIQ4_NL, kBlock, iq4_nl>;
    case DType::kIQ4_XS: return row<BlockIQ4_XS, kSuperBlock, iq4_xs>;
    case DType::kTQ1_0: return row<BlockTQ1_0, kSuperBlock, less_one<BlockTQ1_0, kSuperBlock>>;
    case DType::kTQ2_0: return row<BlockTQ2_0, kSuperBlock, less_one<BlockTQ2_0, kSuperBlock>>;
    case DType::kMXFP4: return row<BlockMXFP4, kBlock, mxfp4>;
    case DType::kNVFP4: return row<BlockNVFP4, 64, nvfp4>;
    case DType::kQ1_0: return row<BlockQ1_0, 128, less_one<BlockQ1_0, 128>>;
    case DType::kQ2_0: return row<BlockQ2_0, 64, less_one<BlockQ2_0, 64>>;
    default: return nullptr;
  }
}

}  // namespace

bool can_dequantize(DType type) { return row_function(type) != nullptr; }

void dequantize_row(DType type, const std::byte* blocks, float* out, int64_t n) {
  TERCET_CHECK(can_dequantize(type));
  TERCET_CHECK(n % dtype_info(type).block_elements == 0);
  row_function(type)(blocks, out, n);
}

}  // namespace tercet::quant
