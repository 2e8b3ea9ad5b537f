#include "quant/encode.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/float16.h"
#include "quant/ggml_blocks.h"

namespace tercet::quant {
namespace {

struct Range {
  float min, max;
};

Range range_of(const float* x) {
  const auto [min, max] = std::minmax_element(x, x + kBlock);
  return {*min, *max};
}

// The value of the largest magnitude, the first of equal ones, with its sign.
float extreme(const float* x) {
  float found = 0;
  for (int i = 0; i < kBlock; ++i)
    if (std::abs(x[i]) > std::abs(found)) found = x[i];
  return found;
}

float inverse(float scale) { return scale != 0 ? 1 / scale : 0; }

// A code from its real position, half of a step added. The comparison also catches NaN.
int code(float position, int most) {
  if (!(position > 0)) return 0;
  return position < static_cast<float>(most) ? static_cast<int>(position) : most;
}

// Codes [32] of at most five bits into qs (low four) and qh (the fifth).
void pack_nibbles(const int* codes, uint8_t* qs) {
  for (int i = 0; i < 16; ++i) qs[i] = static_cast<uint8_t>((codes[i] & 15) | (codes[i + 16] & 15) << 4);
}
void pack_fifth_bits(const int* codes, uint8_t* qh) {
  std::memset(qh, 0, 4);
  for (int i = 0; i < kBlock; ++i) qh[i / 8] |= static_cast<uint8_t>((codes[i] >> 4) << (i % 8));
}

// Symmetric: the extreme value gets the code -`half` exactly. ggml's rounding is that of a fused
// multiply-add.
float symmetric_codes(const float* x, int half, int* codes) {
  const float d = extreme(x) / static_cast<float>(-half);
  const float id = inverse(d);
  for (int i = 0; i < kBlock; ++i)
    codes[i] = code(std::fma(x[i], id, static_cast<float>(half) + 0.5f), 2 * half - 1);
  return d;
}

// From the block's minimum in `most` steps to its maximum.
float affine_codes(const float* x, int most, Range range, int* codes) {
  const float d = (range.max - range.min) / static_cast<float>(most);
  const float id = inverse(d);
  for (int i = 0; i < kBlock; ++i) codes[i] = code((x[i] - range.min) * id + 0.5f, most);
  return d;
}

void encode(const float* x, BlockQ4_0& block) {
  int codes[kBlock];
  block.d = f32_to_f16(symmetric_codes(x, 8, codes));
  pack_nibbles(codes, block.qs);
}
void encode(const float* x, BlockQ5_0& block) {
  int codes[kBlock];
  block.d = f32_to_f16(symmetric_codes(x, 16, codes));
  pack_nibbles(codes, block.qs);
  pack_fifth_bits(codes, block.qh);
}
void encode(const float* x, BlockQ4_1& block) {
  int codes[kBlock];
  const Range range = range_of(x);
  block.d = f32_to_f16(affine_codes(x, 15, range, codes));
  block.m = f32_to_f16(range.min);
  pack_nibbles(codes, block.qs);
}
void encode(const float* x, BlockQ5_1& block) {
  int codes[kBlock];
  const Range range = range_of(x);
  block.d = f32_to_f16(affine_codes(x, 31, range, codes));
  block.m = f32_to_f16(range.min);
  pack_nibbles(codes, block.qs);
  pack_fifth_bits(codes, block.qh);
}
void encode(const float* x, BlockQ8_0& block) {
  const float d = std::abs(extreme(x)) / 127;
  const float id = inverse(d);
  block.d = f32_to_f16(d);
  for (int i = 0; i < kBlock; ++i) {
    const float q = std::round(x[i] * id);
    block.qs[i] = static_cast<int8_t>(q > -127 ? std::min(q, 127.0f) : -127.0f);  // NaN too
  }
}

template <class Block>
void encode_row(const float* values, std::byte* blocks, int64_t n) {
  for (int64_t i = 0; i < n / kBlock; ++i) {
    Block block;
    encode(values + i * kBlock, block);
    std::memcpy(blocks + i * static_cast<int64_t>(sizeof block), &block, sizeof block);
  }
}

template <class Convert>
void convert_row(const float* values, std::byte* out, int64_t n, Convert convert) {
  for (int64_t i = 0; i < n; ++i) {
    const uint16_t bits = convert(values[i]);
    std::memcpy(out + i * 2, &bits, sizeof bits);
  }
}

}  // namespace

bool can_quantize(DType type) {
  switch (type) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kQ8_0:
    case DType::kQ4_0:
    case DType::kQ4_1:
    case DType::kQ5_0:
    case DType::kQ5_1: return true;
    default: return false;
  }
}

void quantize_row(DType type, const float* values, std::byte* blocks, int64_t n) {
  TERCET_CHECK(n % dtype_info(type).block_elements == 0);
  switch (type) {
    case DType::kF32: std::memcpy(blocks, values, static_cast<size_t>(n) * sizeof(float)); return;
    case DType::kF16: return convert_row(values, blocks, n, f32_to_f16);
    case DType::kBF16: return convert_row(values, blocks, n, f32_to_bf16);
    case DType::kQ8_0: return encode_row<BlockQ8_0>(values, blocks, n);
    case DType::kQ4_0: return encode_row<BlockQ4_0>(values, blocks, n);
    case DType::kQ4_1: return encode_row<BlockQ4_1>(values, blocks, n);
    case DType::kQ5_0: return encode_row<BlockQ5_0>(values, blocks, n);
    case DType::kQ5_1: return encode_row<BlockQ5_1>(values, blocks, n);
    default: check_failed("the type can be encoded", __FILE__, __LINE__, std::string(dtype_name(type)));
  }
}

}  // namespace tercet::quant
