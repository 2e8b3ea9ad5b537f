// Linear layers in plain code: the definition that every other kernel reproduces bit for bit.
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "backend/cpu/scalar/scalar_kernels.h"
#include "base/float16.h"

namespace tercet::backend::scalar {
namespace {

using quant::PackedLayout;

// A row of a panel with its codes spelled out, less the zero.
std::vector<int16_t> codes_of_row(const PackedLayout& layout, const std::byte* panel, int64_t inputs,
                                  int row) {
  std::vector<int16_t> codes(static_cast<size_t>(inputs));
  for (int64_t s = 0; s < quant::num_spans(inputs); ++s) {
    const int chunks = quant::span_chunks(inputs, s);
    for (int k = 0; k < chunks * quant::kChunk; ++k)
      codes[static_cast<size_t>(s * quant::kSpan + k)] =
          static_cast<int16_t>(quant::packed_code(layout, panel, k, row));
    panel += quant::span_offsets(layout, chunks).size;
  }
  return codes;
}

// Integer dot products of one block: isum of scaled codes, msum of scaled minimums.
struct BlockSums {
  int32_t isum = 0;
  int32_t msum = 0;
};

// Of inputs [begin, end) of the span, at which `codes` and `q` begin.
BlockSums block_sums(const PackedLayout& layout, const std::byte* span, const quant::SpanOffsets& at,
                     int begin, int end, int row, const int16_t* codes, const int8_t* q) {
  BlockSums sums;
  for (int i = begin; i < end; i += 16) {
    const quant::PackedSub sub = quant::packed_sub(layout, span, at, i / layout.sub_block(), row);
    int32_t dot = 0, q_sum = 0;
    for (int k = i; k < i + 16; ++k) {
      dot += codes[k] * q[k];
      q_sum += q[k];
    }
    sums.isum += sub.scale * dot;
    sums.msum += sub.minimum * q_sum;
  }
  return sums;
}

float packed_dot(const PackedLayout& layout, const std::byte* panel, int64_t inputs, int row,
                 const int16_t* codes, const int8_t* q, const float* d) {
  float acc = 0;
  for (int64_t s = 0; s < quant::num_spans(inputs); ++s) {
    const int chunks = quant::span_chunks(inputs, s);
    const quant::SpanOffsets at = quant::span_offsets(layout, chunks);
    for (int begin = 0; begin < chunks * quant::kChunk; begin += layout.block) {
      const BlockSums sums = block_sums(layout, panel, at, begin, begin + layout.block, row, codes, q);
      const quant::PackedScale w = quant::packed_scale(layout, panel, at, begin / layout.block, row);
      const float isum = static_cast<float>(sums.isum);
      const float t =
          layout.has_min ? std::fma(w.d, isum, -(w.m * static_cast<float>(sums.msum))) : w.d * isum;
      acc = std::fma(d[begin / layout.activation_block()], t, acc);
    }
    panel += at.size;
    codes += quant::kSpan;
    q += quant::kSpan;
    d += quant::kSpan / layout.activation_block();
  }
  return acc;
}

// Row `row` of quantized activations, out of its tile.
struct QuantizedRow {
  std::vector<int8_t> q;
  std::vector<float> d;

  QuantizedRow(const QuantizedRows& x, int64_t row) {
    const int64_t m = row % x.tile;
    for (int64_t k = 0; k < x.cols; ++k) q.push_back(x.q_tile(row / x.tile)[x.offset(k, m)]);
    for (int64_t b = 0; b < x.blocks(); ++b) d.push_back(x.d_tile(row / x.tile)[b * x.tile + m]);
  }
};

bool quantize_row(const float* x, int64_t row, const QuantizedRows& out) {
  const int tile = out.tile;
  const int64_t m = row % tile;
  int8_t* q = out.q_tile(row / tile);
  bool finite = true;
  std::vector<int> sums;  // of 16
  for (int64_t begin = 0; begin < out.cols; begin += out.block) {
    float amax = 0;
    for (int64_t i = begin; i < begin + out.block; ++i) {
      finite = finite && std::isfinite(x[i]);
      amax = std::fabs(x[i]) > amax ? std::fabs(x[i]) : amax;
    }
    const bool tiny = !(amax > kQuantizeTiny);
    const float inverse = tiny ? 0.0f : 127.0f / amax;
    out.d_tile(row / tile)[begin / out.block * tile + m] = tiny ? 0.0f : amax / 127.0f;
    for (int64_t i = begin; i < begin + out.block; ++i) {
      const float scaled = x[i] * inverse;
      const auto code = std::isfinite(scaled) ? static_cast<int8_t>(std::nearbyint(scaled)) : int8_t{0};
      q[out.offset(i, m)] = code;
      if (i % 16 == 0) sums.push_back(0);
      sums.back() += code;
    }
  }
  const auto sum = [&](int64_t i, int size) {  // of sub-block i of `size` inputs
    const auto first = sums.begin() + i * size / 16;
    return std::accumulate(first, first + size / 16, 0);
  };
  int32_t* word = out.sums_tile(row / tile) + m;
  const auto put = [&](int low, int high) {
    *word = static_cast<uint16_t>(low) | static_cast<int32_t>(high << 16);
    word += tile;
  };
  for (int64_t block = 0; block < out.blocks(); ++block) {
    if (out.block == 32) put(sum(2 * block, 16), sum(2 * block + 1, 16));
    if (out.block == 32) continue;
    for (int size : {16, 32}) {
      for (int64_t i = block * 256 / size; i < (block + 1) * 256 / size; i += 4) {
        put(sum(i + 3, size), sum(i + 1, size));
        put(sum(i + 2, size), sum(i, size));
      }
    }
  }
  return finite;
}

float float_weight(FloatType type, const std::byte* panel, int64_t k, int row) {
  if (type == FloatType::kF32) {
    float value;
    std::memcpy(&value, panel + (k * 16 + row) * 4, 4);
    return value;
  }
  const int64_t lane = type == FloatType::kF16 ? k * 16 + row : (k / 2 * 16 + row) * 2 + k % 2;
  uint16_t bits;
  std::memcpy(&bits, panel + lane * 2, 2);
  return type == FloatType::kF16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

float float_dot(FloatType type, const std::byte* panel, int64_t inputs, int row, const float* x) {
  float acc = 0;
  if (type != FloatType::kBF16) {
    for (int64_t k = 0; k < inputs; ++k) acc = std::fma(x[k], float_weight(type, panel, k, row), acc);
    return acc;
  }
  // The order in which tdpbf16ps adds: 32 inputs at a time, even and odd ones apart.
  for (int64_t k = 0; k < inputs; k += 32) {
    float even = 0, odd = 0;
    for (int64_t i = k; i < k + 32; i += 2) {
      even = std::fma(x[i], float_weight(type, panel, i, row), even);
      odd = std::fma(x[i + 1], float_weight(type, panel, i + 1, row), odd);
    }
    acc = acc + (even + odd);
  }
  return acc;
}

// y of each output and row: dot(panel, lane) prepares an output and returns its dot product as a function of
// the row.
template <class Dot>
void for_each_output(const LinearTask& task, const Dot& dot) {
  for (int64_t panel = task.panel_begin; panel < task.panel_end; ++panel) {
    for (int lane = 0; lane < quant::kPanelRows; ++lane) {
      const int64_t output = panel * quant::kPanelRows + lane;
      if (output >= task.outputs) break;
      const auto dot_with_row = dot(task.panels + panel * task.panel_stride, lane);
      for (int64_t row = 0; row < task.rows; ++row) {
        const float acc = dot_with_row(row);
        task.y[row * task.y_stride + output] = task.bias == nullptr ? acc : acc + task.bias[output];
      }
    }
  }
}

}  // namespace

int64_t multiply_adds(int64_t rounds) {
  volatile int32_t factor = 3;
  int32_t sum = 0;
  for (int64_t i = 0; i < rounds; ++i) sum += factor * factor;
  factor = sum;
  return rounds;
}

RowTile row_tile(int64_t, int) { return {}; }

bool quantize_tile(const float* x, int64_t rows, int64_t index, const QuantizedRows& out) {
  bool finite = true;
  for (int64_t m = 0; m < rows; ++m)
    finite = quantize_row(x + m * out.cols, index * out.tile + m, out) && finite;
  return finite;
}

void linear_packed(const PackedLayout& layout, const LinearTask& task, const QuantizedRows& x) {
  std::vector<QuantizedRow> rows;
  for (int64_t row = 0; row < task.rows; ++row) rows.emplace_back(x, row);
  for_each_output(task, [&](const std::byte* panel, int lane) {
    return [&, panel, lane, codes = codes_of_row(layout, panel, task.inputs, lane)](int64_t row) {
      const QuantizedRow& quantized = rows[static_cast<size_t>(row)];
      return packed_dot(layout, panel, task.inputs, lane, codes.data(), quantized.q.data(),
                        quantized.d.data());
    };
  });
}

void linear_float(FloatType type, const LinearTask& task, const float* x, int64_t x_stride) {
  for_each_output(task, [&](const std::byte* panel, int lane) {
    return [&, panel, lane](int64_t row) {
      return float_dot(type, panel, task.inputs, lane, x + row * x_stride);
    };
  });
}

void round_row_bf16(const float* x, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = bf16_to_f32(f32_to_bf16(x[i]));
}

}  // namespace tercet::backend::scalar
