// Linear layers in plain code: the definition that every other kernel reproduces bit for bit.
#include <cmath>
#include <cstring>
#include <vector>

#include "backend/cpu/scalar/scalar_kernels.h"
#include "base/float16.h"

namespace tercet::backend::scalar {
namespace {

using quant::PackedLayout;
using quant::SubScale;

struct SubScales {
  int scale[2];  // of the chunk's two halves of 16
  int minimum[2];
};

SubScales sub_scales(const PackedLayout& layout, const std::byte* span, const quant::SpanOffsets& at,
                     int chunk, int row) {
  const std::byte* bytes = span + at.sub + chunk * 32 + row * 2;
  const int a = static_cast<int>(bytes[0]), b = static_cast<int>(bytes[1]);
  switch (layout.sub) {
    case SubScale::kNone: return {{1, 1}, {1, 1}};
    case SubScale::kPair: return {{static_cast<int8_t>(a), static_cast<int8_t>(b)}, {0, 0}};
    case SubScale::kScaleMin: return {{a, a}, {b, b}};
    case SubScale::kNibbles: return {{a & 15, b & 15}, {a >> 4, b >> 4}};
  }
  return {};
}

float load_half(const std::byte* p) {
  uint16_t bits;
  std::memcpy(&bits, p, 2);
  return f16_to_f32(bits);
}

// A row of a panel with its codes spelled out, less the zero.
std::vector<int16_t> codes_of_row(const PackedLayout& layout, const std::byte* panel, int64_t inputs,
                                  int row) {
  std::vector<int16_t> codes(static_cast<size_t>(inputs));
  for (int64_t s = 0; s < quant::num_spans(inputs); ++s) {
    const int chunks = quant::span_chunks(inputs, s);
    for (int k = 0; k < chunks * quant::kChunk; ++k)
      codes[static_cast<size_t>(s * quant::kSpan + k)] =
          static_cast<int16_t>(quant::packed_code(layout, panel, k, row) - layout.zero);
    panel += quant::span_offsets(layout, chunks).size;
  }
  return codes;
}

// Integer dot products of one block: isum of scaled codes, msum of scaled minimums.
struct BlockSums {
  int32_t isum = 0;
  int32_t msum = 0;
};

// `codes` and `q` begin at the span.
BlockSums block_sums(const PackedLayout& layout, const std::byte* span, const quant::SpanOffsets& at,
                     int first_chunk, int num_chunks, int row, const int16_t* codes, const int8_t* q) {
  BlockSums sums;
  for (int chunk = first_chunk; chunk < first_chunk + num_chunks; ++chunk) {
    const SubScales sub = sub_scales(layout, span, at, chunk, row);
    for (int half = 0; half < 2; ++half) {
      const int begin = chunk * quant::kChunk + half * 16;
      int32_t dot = 0, q_sum = 0;
      for (int k = begin; k < begin + 16; ++k) {
        dot += codes[k] * q[k];
        q_sum += q[k];
      }
      sums.isum += sub.scale[half] * dot;
      sums.msum += sub.minimum[half] * q_sum;
    }
  }
  return sums;
}

float packed_dot(const PackedLayout& layout, const std::byte* panel, int64_t inputs, int row,
                 const int16_t* codes, const int8_t* q, const float* d) {
  float acc = 0;
  for (int64_t s = 0; s < quant::num_spans(inputs); ++s) {
    const int chunks = quant::span_chunks(inputs, s);
    const quant::SpanOffsets at = quant::span_offsets(layout, chunks);
    const int blocks = layout.block == quant::kSpan ? 1 : chunks;
    for (int block = 0; block < blocks; ++block) {
      const BlockSums sums = block_sums(layout, panel, at, block, chunks / blocks, row, codes, q);
      const int lane = (block * quant::kPanelRows + row) * 2;
      const float dw = load_half(panel + at.d + lane);
      const float isum = static_cast<float>(sums.isum);
      const float t =
          layout.has_min
              ? std::fma(dw, isum, -(load_half(panel + at.m + lane) * static_cast<float>(sums.msum)))
              : dw * isum;
      acc = std::fma(d[block], t, acc);
    }
    panel += at.size;
    codes += quant::kSpan;
    q += quant::kSpan;
    d += blocks;
  }
  return acc;
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
      for (int64_t row = task.row_begin; row < task.row_end; ++row) {
        const float acc = dot_with_row(row);
        task.y[row * task.y_stride + output] = task.bias == nullptr ? acc : acc + task.bias[output];
      }
    }
  }
}

}  // namespace

bool quantize_row(const float* x, int64_t row, const QuantizedRows& out) {
  int8_t* q = out.q_row(row);
  bool finite = true;
  for (int64_t begin = 0; begin < out.cols; begin += out.block) {
    float amax = 0;
    for (int64_t i = begin; i < begin + out.block; ++i) {
      finite = finite && std::isfinite(x[i]);
      amax = std::fabs(x[i]) > amax ? std::fabs(x[i]) : amax;
    }
    const bool tiny = !(amax > kQuantizeTiny);
    const float inverse = tiny ? 0.0f : 127.0f / amax;
    out.d_row(row)[begin / out.block] = tiny ? 0.0f : amax / 127.0f;
    for (int64_t i = begin; i < begin + out.block; ++i) {
      const float scaled = x[i] * inverse;
      q[i] = std::isfinite(scaled) ? static_cast<int8_t>(std::nearbyint(scaled)) : int8_t{0};
    }
  }
  for (int64_t i = 0; i < out.cols; i += 16) {
    int sum = 0;
    for (int64_t j = i; j < i + 16; ++j) sum += q[j];
    out.sums_row(row)[i / 16] = static_cast<int16_t>(sum);
  }
  return finite;
}

void linear_packed(const PackedLayout& layout, const LinearTask& task, const QuantizedRows& x) {
  for_each_output(task, [&](const std::byte* panel, int lane) {
    return [&, panel, lane, codes = codes_of_row(layout, panel, task.inputs, lane)](int64_t row) {
      return packed_dot(layout, panel, task.inputs, lane, codes.data(), x.q_row(row), x.d_row(row));
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
