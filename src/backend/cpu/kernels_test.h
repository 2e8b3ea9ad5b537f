// The cases that hold a kernel table to the scalar reference, bit for bit. Included by the test of the tables
// that this machine can run and by the test of the tables that are emulated.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/kernels.h"
#include "base/float16.h"
#include "base/thread_pool.h"
#include "quant/codec.h"

namespace tercet::backend {

struct NamedKernels {
  std::string name;
  const Kernels* table;
};

inline void PrintTo(const NamedKernels& kernels, std::ostream* os) { *os << kernels.name; }

inline std::vector<float> attention_output(const Kernels& kernels, const AttentionTile& tile) {
  const auto size = static_cast<size_t>(tile.num_rows * tile.v_dim);
  std::vector<float> part_o(size), total_o(size), out(size);
  AttentionPartial part{}, total{};
  part.o = part_o.data(), total.o = total_o.data();
  for (int segment = 0; segment < 3; ++segment) {
    kernels.attention_segment(tile, segment, part);
    kernels.attention_merge(tile.num_rows, tile.v_dim, part, total);
  }
  float* rows[AttentionTile::kMaxRows];
  for (int r = 0; r < tile.num_rows; ++r) rows[r] = out.data() + r * tile.v_dim;
  kernels.attention_finish(tile.num_rows, tile.v_dim, total, rows);
  return out;
}

class KernelsTest : public testing::TestWithParam<NamedKernels> {
 protected:
  const Kernels& tested() const { return *GetParam().table; }
  const Kernels& scalar() const { return kernels(Isa::kScalar); }

  // Normal values with outliers, zeros and subnormals among them.
  std::vector<float> values(int64_t n, float spread = 1.0f) {
    std::normal_distribution<float> normal(0.0f, spread);
    std::vector<float> out(static_cast<size_t>(n));
    for (float& value : out) {
      const auto kind = random_() % 64;
      value = kind == 0   ? 0.0f
              : kind == 1 ? normal(random_) * 1e-39f
              : kind == 2 ? normal(random_) * 100
                          : normal(random_);
    }
    return out;
  }

  template <class T>
  static void expect_same_bits(const std::vector<T>& expected, const std::vector<T>& got,
                               const std::string& what) {
    ASSERT_EQ(expected.size(), got.size());
    if (std::memcmp(expected.data(), got.data(), expected.size() * sizeof(T)) == 0) return;
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(0, std::memcmp(&expected[i], &got[i], sizeof(T)))
          << what << " differs at " << i << ": " << +expected[i] << " expected, " << +got[i] << " found";
  }

  void compare_attention(const AttentionTile& tile) {
    expect_same_bits(
        attention_output(scalar(), tile), attention_output(tested(), tile),
        "attention, " + std::to_string(tile.num_rows) + " rows of " + std::to_string(tile.k_dim));
  }

  std::mt19937 random_{11};
  FloatEnvironment environment_;
};

TEST_P(KernelsTest, RowKernelsForEveryLength) {
  for (int64_t n : {1, 7, 15, 16, 17, 33, 48, 64, 100, 576, 896}) {
    const std::string what = "n = " + std::to_string(n);
    const std::vector<float> x = values(n, 3), y = values(n, 2);
    std::vector<float> a(x.size()), b(x.size());
    EXPECT_TRUE(scalar().rms_norm(x.data(), y.data(), n, 1e-5f, a.data()));
    EXPECT_TRUE(tested().rms_norm(x.data(), y.data(), n, 1e-5f, b.data()));
    expect_same_bits(a, b, "rms_norm, " + what);
    const auto in_place = [&](const char* name, const auto& run) {
      a = x, b = x;
      run(scalar(), a.data());
      run(tested(), b.data());
      expect_same_bits(a, b, name + (", " + what));
    };
    in_place("add", [&](const Kernels& k, float* v) { k.add(v, y.data(), n); });
    in_place("scale", [&](const Kernels& k, float* v) { k.scale(v, n, 1.7f); });
    in_place("silu gate", [&](const Kernels& k, float* v) { k.gate(Activation::kSilu, v, y.data(), n, v); });
    in_place("add scaled", [&](const Kernels& k, float* v) { k.add_scaled(v, y.data(), n, 0.3f); });
    in_place("clamped gate",
             [&](const Kernels& k, float* v) { k.gate(Activation::kClampedSwiGlu, v, y.data(), n, v); });
    in_place("gelu gate",
             [&](const Kernels& k, float* v) { k.gate(Activation::kGeluTanh, v, y.data(), n, v); });
    in_place("soft cap", [&](const Kernels& k, float* v) { k.soft_cap(v, n, 30.0f); });
    if (n % 2 == 0) {
      in_place("rope", [&](const Kernels& k, float* v) {
        k.rope(v, y.data(), y.data() + n / 2, static_cast<int>(n / 2));
      });
    }
  }
}

TEST_P(KernelsTest, ActivationsAtTheEdgesOfExp) {
  std::vector<float> x;
  for (float edge : {-104.0f, -88.0f, -87.33654f, -87.33655f, -10.0f, -0.625f, -0.0f, 0.0f, 0.624f, 9.0f,
                     88.376f, 89.0f, 1e30f})
    for (int step = -8; step <= 8; ++step) x.push_back(edge * (1.0f + static_cast<float>(step) * 1e-6f));
  const std::vector<float> ones(x.size(), 1.0f);
  for (Activation activation : {Activation::kSilu, Activation::kGeluTanh, Activation::kClampedSwiGlu}) {
    std::vector<float> a = x, b = x;
    const auto n = static_cast<int64_t>(x.size());
    scalar().gate(activation, x.data(), ones.data(), n, a.data());
    tested().gate(activation, x.data(), ones.data(), n, b.data());
    expect_same_bits(a, b, "activation");
  }
}

TEST_P(KernelsTest, ReportsValuesThatAreNotFinite) {
  for (float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (size_t at : {size_t{0}, size_t{31}, size_t{63}}) {
      std::vector<float> x = values(64);
      x[at] = bad;
      std::vector<float> out(64), sum(64, 1.0f);
      EXPECT_FALSE(tested().add(sum.data(), x.data(), 64));
      EXPECT_FALSE(tested().rms_norm(x.data(), out.data(), 64, 1e-5f, out.data()));
      std::vector<int8_t> q(64);
      std::vector<float> d(2);
      std::vector<int32_t> sums(2);
      EXPECT_FALSE(tested().quantize_tile(x.data(), 1, 0, {q.data(), d.data(), sums.data(), 64, 32, 1}));
    }
  }
}

struct Quantized {
  std::vector<int8_t> q;
  std::vector<float> d;
  std::vector<int32_t> sums;
  QuantizedRows view;

  Quantized(const Kernels& kernels, const float* x, int64_t rows, int64_t cols, int block, RowTile shape) {
    const int tile = shape.rows;
    const int64_t padded = (rows + tile - 1) / tile * tile;
    q.resize(static_cast<size_t>(padded * cols), 77);
    d.resize(static_cast<size_t>(padded * cols / block), 3);
    sums.resize(static_cast<size_t>(padded * cols / block * sums_per_block(block)), 5);
    view = {q.data(), d.data(), sums.data(), cols, block, tile, shape.run};
    for (int64_t row = 0; row < rows; row += tile)
      EXPECT_TRUE(
          kernels.quantize_tile(x + row * cols, std::min<int64_t>(tile, rows - row), row / tile, view));
  }
};

TEST_P(KernelsTest, QuantizesActivations) {
  for (int block : {32, 256}) {
    for (float spread : {1.0f, 1e-20f, 1e-34f, 1e4f}) {
      std::vector<float> x = values(2 * 768, spread);
      std::fill(x.begin() + 256, x.begin() + 512, 0.0f);
      // Halves where the largest is 127: ties round to even.
      for (int i = 0; i < 256; ++i) x[static_cast<size_t>(i)] = spread * (static_cast<float>(i % 127) + 0.5f);
      for (size_t i = 31; i < 256; i += 32) x[i] = spread * 127;
      // Close to halves, where the last bit of the inverse decides.
      for (int i = 0; i < 256; ++i) {
        const float largest = spread * (0.7f + 0.031f * static_cast<float>(i / block));
        const bool is_last = i % block == block - 1;
        x[static_cast<size_t>(768 + i)] =
            is_last ? largest : largest / 127 * (static_cast<float>(i * 4 % 127) + 0.5f);
      }
      for (const RowTile tile : {RowTile{1, 4}, {2, 4}, {3, 4}, {16, 32}, {2, 64}}) {
        if (tile.run > block) continue;
        const Quantized a(scalar(), x.data(), 2, 768, block, tile),
            b(tested(), x.data(), 2, 768, block, tile);
        expect_same_bits(a.q, b.q, "q");
        expect_same_bits(a.d, b.d, "d");
        expect_same_bits(a.sums, b.sums, "sums");
        for (int8_t q : b.q) ASSERT_GE(q, -127);
      }
    }
  }
}

class PackedWeights {
 public:
  PackedWeights(DType type, int64_t outputs, int64_t inputs, std::mt19937& random)
      : layout_(*quant::packed_layout(type)), stride_(quant::panel_bytes(layout_, inputs)) {
    const auto row_bytes = static_cast<size_t>(dtype_row_bytes(type, inputs));
    std::vector<std::byte> rows(row_bytes * static_cast<size_t>(outputs));
    for (std::byte& byte : rows) byte = static_cast<std::byte>(random());
    panels_.resize(static_cast<size_t>(quant::num_panels(outputs) * stride_));
    for (int64_t panel = 0; panel < quant::num_panels(outputs); ++panel) {
      const std::byte* pointers[16] = {};
      for (int64_t lane = 0; lane < 16 && panel * 16 + lane < outputs; ++lane)
        pointers[lane] = rows.data() + row_bytes * static_cast<size_t>(panel * 16 + lane);
      quant::pack_panel(type, pointers, inputs, panels_.data() + panel * stride_);
      tame_scales(inputs, panels_.data() + panel * stride_, random);
    }
  }
  const quant::PackedLayout& layout() const { return layout_; }
  const std::byte* panels() const { return panels_.data(); }
  int64_t stride() const { return stride_; }

 private:
  // Random bytes make scales that overflow; these keep codes and sub-scales wild and d, m moderate.
  void tame_scales(int64_t inputs, std::byte* panel, std::mt19937& random) {
    std::normal_distribution<float> normal(0.0f, 0.01f);
    for (int64_t s = 0; s < quant::num_spans(inputs); ++s) {
      const auto at = quant::span_offsets(layout_, quant::span_chunks(inputs, s));
      const int end = layout_.has_min ? at.m + (at.m - at.d) : at.m;
      for (int i = at.d; i < end; i += 2) {
        const uint16_t half = f32_to_f16(normal(random));
        std::memcpy(panel + i, &half, 2);
        if (layout_.e8m0)
          for (int j = i; j < i + 2; ++j)
            panel[j] = static_cast<std::byte>(random() % 8 == 0 ? 0 : 100 + random() % 40);
      }
      panel += at.size;
    }
  }
  quant::PackedLayout layout_;
  int64_t stride_;
  std::vector<std::byte> panels_;
};

inline std::vector<DType> packed_types() {
  std::vector<DType> types;
  for (const DTypeInfo& info : dtype_table())
    if (quant::packed_layout(info.type) != nullptr) types.push_back(info.type);
  return types;
}

TEST_P(KernelsTest, PackedLinearForEveryFormatSizeAndRowCount) {
  for (DType type : packed_types()) {
    const int block = quant::packed_layout(type)->activation_block();
    const int unit = std::max(block, dtype_info(type).block_elements);
    for (int64_t blocks : {1, 2, 3, 9}) {
      for (int64_t outputs : {5, 16, 35}) {
        const int64_t inputs = blocks * unit;
        const PackedWeights weights(type, outputs, inputs, random_);
        const std::vector<float> bias = values(outputs);
        const int64_t max_rows = blocks == 3 ? 50 : 5;
        std::vector<float> x = values(max_rows * inputs, 2);
        // The largest sums: every code times 127.
        std::fill(x.begin(), x.begin() + inputs, 5.0f);
        const int64_t y_stride = outputs + 3;
        std::vector<float> expected(static_cast<size_t>(max_rows * y_stride), -1.0f);
        LinearTask task{weights.panels(),
                        weights.stride(),
                        inputs,
                        outputs,
                        0,
                        quant::num_panels(outputs),
                        max_rows,
                        blocks % 2 == 0 ? bias.data() : nullptr,
                        expected.data(),
                        y_stride};
        scalar().linear_packed(weights.layout(), task,
                               Quantized(scalar(), x.data(), max_rows, inputs, block, {}).view);
        // A pass of any number of rows: the bits of the first so many.
        for (int64_t rows = 1; rows <= max_rows; rows += rows < 17 ? 1 : 11) {
          const Quantized q(tested(), x.data(), rows, inputs, block, tested().row_tile(rows, block));
          std::vector<float> got(static_cast<size_t>(rows * y_stride), -1.0f);
          task.rows = rows;
          task.prefetch = {rows % 2 == 0 ? 576 : 0, rows % 3 == 0 ? 4608 : 0};
          task.y = got.data();
          tested().linear_packed(weights.layout(), task, q.view);
          expect_same_bits({expected.begin(), expected.begin() + rows * y_stride}, got,
                           std::string(dtype_name(type)) + ", " + std::to_string(rows) + " rows of " +
                               std::to_string(inputs));
        }
      }
    }
  }
}

TEST_P(KernelsTest, FloatLinearForEveryTypeSizeAndRowCount) {
  for (FloatType type : {FloatType::kF32, FloatType::kF16, FloatType::kBF16}) {
    for (int64_t inputs : {1, 8, 31, 32, 100, 160, 1090}) {
      for (int64_t outputs : {3, 16, 90}) {
        if (inputs > 1000 && outputs > 16) continue;  // slow where it is emulated
        const int64_t padded = (inputs + 31) / 32 * 32;
        const int64_t stride = float_panel_bytes(type, inputs);
        std::vector<std::byte> panels(static_cast<size_t>(stride * quant::num_panels(outputs)));
        const int width = type == FloatType::kF32 ? 4 : 2;
        const std::vector<float> w = values(static_cast<int64_t>(panels.size()) / width);
        for (size_t i = 0; i < w.size(); ++i) {
          const uint16_t half = type == FloatType::kF16 ? f32_to_f16(w[i]) : f32_to_bf16(w[i]);
          if (type == FloatType::kF32)
            std::memcpy(&panels[i * 4], &w[i], 4);
          else
            std::memcpy(&panels[i * 2], &half, 2);
        }
        const std::vector<float> bias = values(outputs);
        constexpr int64_t kMaxRows = 40;
        std::vector<float> x = values(kMaxRows * padded);
        if (type == FloatType::kBF16) {
          for (int64_t row = 0; row < kMaxRows; ++row) {
            tested().round_row_bf16(x.data() + row * padded, inputs, x.data() + row * padded);
            std::fill(x.begin() + row * padded + inputs, x.begin() + (row + 1) * padded, 0.0f);
          }
        }
        for (int64_t rows = 1; rows <= kMaxRows; rows += rows < 9 || rows == 39 ? 1 : 10) {
          LinearTask task{panels.data(),
                          stride,
                          inputs,
                          outputs,
                          0,
                          quant::num_panels(outputs),
                          rows,
                          rows % 2 == 0 ? bias.data() : nullptr,
                          nullptr,
                          outputs};
          std::vector<float> a(static_cast<size_t>(rows * outputs)), b = a;
          task.y = a.data();
          scalar().linear_float(type, task, x.data(), padded);
          task.y = b.data();
          tested().linear_float(type, task, x.data(), padded);
          expect_same_bits(a, b, "inputs " + std::to_string(inputs) + ", rows " + std::to_string(rows));
        }
      }
    }
  }
}

TEST_P(KernelsTest, AttentionForEveryWindowTypeAndTile) {
  for (KvType type :
       {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kInt8, KvType::kE4M3, KvType::kE5M2}) {
    for (const auto& [k_dim, v_dim] : {std::pair(8, 8), {20, 20}, {64, 64}, {40, 24}, {12, 36}, {290, 24}}) {
      if (k_dim > 256 && type != KvType::kF16 && type != KvType::kInt8)
        continue;  // slow where it is emulated
      constexpr int kBlocks = 40;
      const int64_t k_bytes = k_head_bytes(type, k_dim);
      const int64_t v_bytes = v_head_bytes(type, v_dim);
      std::vector<std::byte> k(static_cast<size_t>(kBlocks * k_bytes + 64)), k_tested = k;
      std::vector<std::byte> v(static_cast<size_t>(kBlocks * v_bytes + 64)), v_tested = v;
      std::vector<int32_t> table(kBlocks);
      for (int i = 0; i < kBlocks; ++i) table[static_cast<size_t>(i)] = (i * 7 + 3) % kBlocks;
      for (int position = 0; position < kBlocks * 16; ++position) {
        const std::vector<float> key = values(k_dim), value = values(v_dim);
        const int64_t block = table[static_cast<size_t>(position / 16)];
        scalar().store_k(type, key.data(), k_dim, position % 16, k.data() + block * k_bytes);
        scalar().store_v(type, value.data(), v_dim, position % 16, v.data() + block * v_bytes);
        tested().store_k(type, key.data(), k_dim, position % 16, k_tested.data() + block * k_bytes);
        tested().store_v(type, value.data(), v_dim, position % 16, v_tested.data() + block * v_bytes);
      }
      ASSERT_EQ(k, k_tested);
      ASSERT_EQ(v, v_tested);
      for (int rows : {1, 2, 3, 4, 5, 7, 9, 16, 23, 48}) {
        const std::vector<float> q = values(rows * k_dim);
        std::vector<std::vector<int8_t>> q8_codes(static_cast<size_t>(rows));
        AttentionTile tile;
        tile.num_rows = rows;
        tile.table = table.data();
        tile.k = k.data(), tile.v = v.data();
        tile.k_stride = k_bytes, tile.v_stride = v_bytes;
        tile.k_dim = k_dim, tile.v_dim = v_dim, tile.type = type;
        tile.scale = 0.3f, tile.soft_cap = rows % 2 == 0 ? 20.0f : 0.0f;
        for (int r = 0; r < rows; ++r) {
          tile.q[r] = q.data() + r * k_dim;
          q8_codes[static_cast<size_t>(r)].assign(static_cast<size_t>((k_dim + 3) / 4 * 4), 0);
          int8_t* codes = q8_codes[static_cast<size_t>(r)].data();
          tile.q8[r] = codes;
          tile.q8_scale[r] = tested().quantize_head(tile.q[r], k_dim, codes);
          tile.q8_sum[r] = std::accumulate(codes, codes + k_dim, 0);
          tile.last[r] = 5 + r % 17 * 37;
          tile.first[r] = r % 3 == 0 ? 0 : std::max(0, tile.last[r] - 50);
        }
        compare_attention(tile);
      }
    }
  }
}

}  // namespace tercet::backend
