// Operators of the stream against their definitions in double precision, and against each other.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "backend/cpu/cpu_device.h"
#include "backend/cpu/cpu_stream.h"
#include "base/float16.h"

namespace tercet::backend {
namespace {

class StreamTest : public testing::TestWithParam<Isa> {
 protected:
  std::vector<float> normal(int64_t n, float spread = 1) {
    std::normal_distribution<float> distribution(0, spread);
    std::vector<float> values(static_cast<size_t>(n));
    for (float& value : values) value = distribution(random_);
    return values;
  }

  // Rows of `type` with the values of `values`, rounded.
  static std::vector<std::byte> encode(DType type, const std::vector<float>& values) {
    std::vector<std::byte> out;
    const auto put = [&](auto value) {
      const auto* bytes = reinterpret_cast<const std::byte*>(&value);
      out.insert(out.end(), bytes, bytes + sizeof value);
    };
    for (size_t i = 0; i < values.size(); ++i) {
      if (type == DType::kF32) put(values[i]);
      if (type == DType::kBF16) put(f32_to_bf16(values[i]));
      if (type == DType::kQ8_0 && i % 32 == 0) {
        float amax = 0;
        for (size_t j = i; j < i + 32; ++j) amax = std::max(amax, std::fabs(values[j]));
        const uint16_t scale = f32_to_f16(amax / 127);
        put(scale);
        for (size_t j = i; j < i + 32; ++j)
          put(static_cast<int8_t>(std::lround(values[j] / f16_to_f32(scale))));
      }
    }
    return out;
  }

  Matrix on_device(const std::vector<float>& values, int64_t rows, Buffer& buffer) {
    const Matrix matrix = buffer.view(rows, static_cast<int64_t>(values.size()) / rows);
    stream_->upload(values, matrix);
    return matrix;
  }
  std::vector<float> from_device(Matrix matrix) {
    std::vector<float> values(static_cast<size_t>(matrix.rows * matrix.cols));
    stream_->download(matrix, values);
    return values;
  }
  std::unique_ptr<Weight> vector(const std::vector<float>& values) {
    return *device_->vector(
        {"v", DType::kF32, 1, static_cast<int64_t>(values.size()), std::as_bytes(std::span(values)), {}});
  }

  std::mt19937 random_{5};
  std::unique_ptr<Device> device_ = make_cpu_device({.isa = GetParam(), .widen_weights = false});
  ThreadPool threads_{3};
  std::unique_ptr<Stream> stream_ = device_->stream(threads_);
  std::unique_ptr<Buffer> a_ = device_->buffer(), b_ = device_->buffer(), c_ = device_->buffer(),
                          d_ = device_->buffer();
};

// Every routed copy of a row gets the bits of that row alone against that expert's matrix alone.
TEST_P(StreamTest, RowsByExpertEqualRowsAlone) {
  constexpr int kExperts = 5;
  constexpr int64_t kInputs = 64, kOutputs = 37;
  for (const DType type : {DType::kF32, DType::kBF16, DType::kQ8_0}) {
    std::vector<std::vector<std::byte>> matrices;
    for (int e = 0; e < kExperts; ++e) matrices.push_back(encode(type, normal(kInputs * kOutputs, 0.2f)));
    const auto source = [&](int e) -> Result<WeightSource> {
      return WeightSource{"w", type, kOutputs, kInputs, matrices[static_cast<size_t>(e)], {}};
    };
    const auto stack = *device_->pack_stack(kExperts, source, threads_);
    const std::vector<float> bias_values = normal(kExperts * kOutputs);
    const auto bias = vector(bias_values);
    RouterSpec router;
    router.num_experts = kExperts;
    router.num_used = 2;
    for (const int64_t rows : {1, 2, 9, 40}) {
      const std::vector<float> x_values = normal(rows * kInputs), logits = normal(rows * kExperts);
      const auto routes = device_->routes();
      stream_->route(on_device(logits, rows, *a_), router, nullptr, *routes);
      const Matrix x = on_device(x_values, rows, *a_);
      const Matrix copies = b_->view(rows * 2, kInputs), products = c_->view(rows * 2, kOutputs);
      stream_->scatter_to_routes(x, *routes, copies);
      const LinearTerm terms[] = {{.weight = stack.get(), .bias = bias.get(), .out = products}};
      stream_->linear_by_route(copies, *routes, terms);
      const Matrix sums = d_->view(rows, kOutputs);
      stream_->gather_from_routes(products, *routes, sums);
      const std::vector<float> together = from_device(sums);
      for (int64_t row = 0; row < rows; ++row) {
        // The two best by hand, ascending, and their softmax weights over all experts.
        const float* l = logits.data() + row * kExperts;
        std::vector<int> order(kExperts);
        for (int e = 0; e < kExperts; ++e) order[static_cast<size_t>(e)] = e;
        std::sort(order.begin(), order.end(), [&](int p, int q) { return l[p] > l[q]; });
        std::sort(order.begin(), order.begin() + 2);
        double normalizer = 0;
        for (int e = 0; e < kExperts; ++e) normalizer += std::exp(static_cast<double>(l[e]));
        std::vector<double> expected(kOutputs);
        for (int i = 0; i < 2; ++i) {
          const int e = order[static_cast<size_t>(i)];
          const auto single = *device_->pack(*source(e), threads_);
          const auto single_bias =
              vector({bias_values.begin() + e * kOutputs, bias_values.begin() + (e + 1) * kOutputs});
          const std::vector<float> one(x_values.begin() + row * kInputs,
                                       x_values.begin() + (row + 1) * kInputs);
          const Matrix product = c_->view(1, kOutputs);
          const LinearTerm alone[] = {{.weight = single.get(), .bias = single_bias.get(), .out = product}};
          stream_->linear(on_device(one, 1, *a_), alone);
          const std::vector<float> values = from_device(product);
          const double weight = std::exp(static_cast<double>(l[e])) / normalizer;
          for (size_t o = 0; o < expected.size(); ++o) expected[o] += weight * static_cast<double>(values[o]);
        }
        for (size_t o = 0; o < expected.size(); ++o)
          ASSERT_NEAR(expected[o], together[static_cast<size_t>(row * kOutputs) + o], 1e-5);
      }
    }
  }
}

// Weight 1 and one copy: what comes back is bit for bit what each head's matrix gives for its rows.
TEST_P(StreamTest, RowsByHeadEqualRowsAlone) {
  constexpr int kHeads = 3;
  constexpr int64_t kRows = 4, kInputs = 20, kOutputs = 24;
  std::vector<std::vector<float>> matrices;
  for (int h = 0; h < kHeads; ++h) matrices.push_back(normal(kInputs * kOutputs));
  const auto source = [&](int h) -> Result<WeightSource> {
    return WeightSource{
        "w", DType::kF32, kOutputs, kInputs, std::as_bytes(std::span(matrices[static_cast<size_t>(h)])), {}};
  };
  const auto stack = *device_->pack_stack(kHeads, source, threads_);
  const std::vector<float> x_values = normal(kRows * kHeads * kInputs);
  const auto routes = device_->routes();
  stream_->route_heads(kRows * kHeads, kHeads, *routes);
  const Matrix copies = b_->view(kRows * kHeads, kInputs), products = c_->view(kRows * kHeads, kOutputs);
  stream_->scatter_to_routes(on_device(x_values, kRows * kHeads, *a_), *routes, copies);
  const LinearTerm terms[] = {{.weight = stack.get(), .out = products}};
  stream_->linear_by_route(copies, *routes, terms);
  const Matrix out = d_->view(kRows * kHeads, kOutputs);
  stream_->gather_from_routes(products, *routes, out);
  const std::vector<float> together = from_device(out);
  for (int64_t row = 0; row < kRows * kHeads; ++row) {
    const auto single = *device_->pack(*source(static_cast<int>(row % kHeads)), threads_);
    const std::vector<float> one(x_values.begin() + row * kInputs, x_values.begin() + (row + 1) * kInputs);
    const Matrix product = c_->view(1, kOutputs);
    const LinearTerm alone[] = {{.weight = single.get(), .out = product}};
    stream_->linear(on_device(one, 1, *a_), alone);
    const std::vector<float> values = from_device(product);
    EXPECT_EQ(0, std::memcmp(values.data(), together.data() + row * kOutputs, values.size() * 4)) << row;
  }
}

TEST_P(StreamTest, AGatedTermIsTheGateOfBothProducts) {
  constexpr int64_t kInputs = 64, kOutputs = 1000 + 5;
  for (const DType type : {DType::kF32, DType::kBF16, DType::kQ8_0}) {
    const auto random_weight = [&](DType of) {
      const std::vector<std::byte> data = encode(of, normal(kInputs * kOutputs, 0.2f));
      return *device_->pack({"w", of, kOutputs, kInputs, data, {}}, threads_);
    };
    // The up projection of another type: both forms of x are needed.
    const auto gate = random_weight(type), up = random_weight(DType::kQ8_0);
    const auto gate_bias = vector(normal(kOutputs)), up_bias = vector(normal(kOutputs));
    for (const int64_t rows : {1, 5, 40}) {
      const Matrix x = on_device(normal(rows * kInputs), rows, *a_);
      const Matrix g = b_->view(rows, kOutputs), u = c_->view(rows, kOutputs),
                   both = d_->view(rows, kOutputs);
      const LinearTerm apart[] = {{.weight = gate.get(), .bias = gate_bias.get(), .out = g},
                                  {.weight = up.get(), .bias = up_bias.get(), .out = u}};
      stream_->linear(x, apart);
      std::vector<float> expected = from_device(g);
      kernels(Isa::kScalar)
          .gate(Activation::kGeluTanh, expected.data(), from_device(u).data(), rows * kOutputs,
                expected.data());
      const LinearTerm together[] = {{.weight = gate.get(),
                                      .bias = gate_bias.get(),
                                      .out = both,
                                      .up = up.get(),
                                      .up_bias = up_bias.get(),
                                      .activation = Activation::kGeluTanh}};
      stream_->linear(x, together);
      EXPECT_EQ(expected, from_device(both)) << dtype_name(type) << ", " << rows << " rows";
    }
  }
}

// Three panels are two pieces for three threads: rows are cut too.
TEST_P(StreamTest, PartsOfManyRowsEqualRowsAlone) {
  constexpr int64_t kInputs = 64, kOutputs = 37;
  for (const DType type : {DType::kF32, DType::kBF16, DType::kQ8_0}) {
    const auto random_weight = [&](DType of) {
      const std::vector<std::byte> data = encode(of, normal(kInputs * kOutputs, 0.2f));
      return *device_->pack({"w", of, kOutputs, kInputs, data, {}}, threads_);
    };
    const auto gate = random_weight(type), up = random_weight(DType::kQ8_0);
    const auto bias = vector(normal(kOutputs));
    const auto multiply = [&](const std::vector<float>& x, int64_t rows) {
      const Matrix out = b_->view(rows, kOutputs);
      const LinearTerm terms[] = {{.weight = gate.get(), .bias = bias.get(), .out = out, .up = up.get()}};
      stream_->linear(on_device(x, rows, *a_), terms);
      return from_device(out);
    };
    for (const int64_t rows : {300, 337, 521}) {
      ASSERT_GT(linear_row_parts(rows, 2, threads_.num_threads()), 1);
      const std::vector<float> x = normal(rows * kInputs), together = multiply(x, rows);
      for (int64_t row = 0; row < rows; ++row) {
        const std::vector<float> alone =
            multiply({x.begin() + row * kInputs, x.begin() + (row + 1) * kInputs}, 1);
        ASSERT_EQ(0, std::memcmp(alone.data(), together.data() + row * kOutputs, alone.size() * 4))
            << dtype_name(type) << ", row " << row << " of " << rows;
      }
    }
  }
}

TEST_P(StreamTest, TheClampedSwiGluOfGptOss) {
  std::vector<float> gate = normal(200, 6);
  const std::vector<float> up = normal(200, 6), gate_before = gate;
  kernels(GetParam()).gate(Activation::kClampedSwiGlu, gate.data(), up.data(), 200, gate.data());
  for (size_t i = 0; i < gate.size(); ++i) {
    const double x = std::min(static_cast<double>(gate_before[i]), 7.0);
    const double y = std::clamp(static_cast<double>(up[i]), -7.0, 7.0);
    EXPECT_NEAR((y + 1) * x / (1 + std::exp(-1.702 * x)), gate[i], 1e-5);
  }
}

struct AttentionCase {
  int heads, kv_heads, k_dim, v_dim, window;
  float soft_cap;
  bool sinks;
};

// Softmax over all keys at once, sinks among them, in double.
TEST_P(StreamTest, AttentionEqualsItsDefinition) {
  constexpr int kPositions = 300;  // two segments
  constexpr float kScale = 0.3f;
  for (const AttentionCase& c : {AttentionCase{4, 2, 16, 16, 0, 0, false},
                                 {4, 2, 16, 24, 0, 0, true},
                                 {6, 1, 40, 32, 0, 5, true},
                                 {4, 4, 12, 20, 33, 0, true},
                                 {2, 1, 8, 8, 270, 3, false}}) {
    const auto kv = *device_->kv_store({{{0, c.kv_heads, c.k_dim, c.v_dim}}, {20}, KvType::kF32});
    kv::StepBatch batch;
    batch.sequences = {{0, kPositions, 0, 0}};
    batch.groups.resize(1);
    for (int b = 0; b < 19; ++b) {
      batch.groups[0].blocks.push_back(19 - b);
      batch.groups[0].blocks_to_zero.push_back(19 - b);
    }
    batch.groups[0].starts = {0, 19};
    for (int i = 0; i < kPositions; ++i) batch.tokens.push_back(0), batch.positions.push_back(i);
    const std::vector<float> q = normal(int64_t{kPositions} * c.heads * c.k_dim);
    const std::vector<float> k = normal(int64_t{kPositions} * c.kv_heads * c.k_dim);
    const std::vector<float> v = normal(int64_t{kPositions} * c.kv_heads * c.v_dim);
    const std::vector<float> sink_values = normal(c.heads);
    const auto sinks = vector(sink_values);
    stream_->prepare_kv(*kv, batch);
    stream_->store_kv(*kv, 0, on_device(k, kPositions, *b_), on_device(v, kPositions, *c_), batch);
    const Matrix out = d_->view(kPositions, int64_t{c.heads} * c.v_dim);
    stream_->attention(*kv, 0, on_device(q, kPositions, *a_), batch,
                       {c.heads, kScale, c.soft_cap, c.window, c.sinks ? sinks.get() : nullptr}, out);
    const std::vector<float> got = from_device(out);
    for (int row = 0; row < kPositions; ++row) {
      for (int head = 0; head < c.heads; ++head) {
        const int kv_head = head / (c.heads / c.kv_heads);
        double sum = c.sinks ? std::exp(static_cast<double>(sink_values[static_cast<size_t>(head)])) : 0;
        std::vector<double> expected(static_cast<size_t>(c.v_dim));
        for (int i = c.window == 0 ? 0 : std::max(0, row - c.window + 1); i <= row; ++i) {
          double score = 0;
          for (int d = 0; d < c.k_dim; ++d)
            score += static_cast<double>(q[static_cast<size_t>((row * c.heads + head) * c.k_dim + d)]) *
                     static_cast<double>(k[static_cast<size_t>((i * c.kv_heads + kv_head) * c.k_dim + d)]);
          score *= static_cast<double>(kScale);
          if (c.soft_cap != 0) score = c.soft_cap * std::tanh(score / static_cast<double>(c.soft_cap));
          const double p = std::exp(score);
          sum += p;
          for (int d = 0; d < c.v_dim; ++d)
            expected[static_cast<size_t>(d)] +=
                p * static_cast<double>(v[static_cast<size_t>((i * c.kv_heads + kv_head) * c.v_dim + d)]);
        }
        for (int d = 0; d < c.v_dim; ++d)
          ASSERT_NEAR(expected[static_cast<size_t>(d)] / sum,
                      got[static_cast<size_t>((row * c.heads + head) * c.v_dim + d)], 2e-5)
              << "row " << row << ", head " << head;
      }
    }
  }
}

std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : kAllIsas)
    if (isa_available(isa)) isas.push_back(isa);
  return isas;
}
INSTANTIATE_TEST_SUITE_P(Isa, StreamTest, testing::ValuesIn(available_isas()),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

TEST(LinearGrain, LeavesEachThreadItsPartOfALayer) {
  constexpr int64_t kPanelBytes = 13824;  // Q4_K of 1536 inputs
  for (const int64_t rows : {1, 16, 17, 512}) {
    const int64_t step = rows > 16 ? 2 : 1;
    for (const int64_t panels : {36, 40, 56, 96, 256, 304, 560}) {
      for (const int threads : {1, 2, 3, 4, 8, 16, 32}) {
        const int64_t grain = linear_grain(panels, kPanelBytes, rows, threads);
        EXPECT_EQ(grain % step, 0);
        const int64_t pieces = (panels + grain - 1) / grain;
        const int64_t most = (pieces + threads - 1) / threads * grain;  // panels of the thread that has most
        // A piece more than its part, where pieces are as small as can be; else an eighth more.
        const double part = static_cast<double>(panels) / threads;
        EXPECT_LE(static_cast<double>(most), grain == step ? part + static_cast<double>(step) : part * 1.125)
            << panels << " panels, " << threads << " threads, " << rows << " rows: " << grain;
      }
    }
  }
}

TEST(LinearRowParts, IsOneWherePiecesAreEnough) {
  for (const int threads : {1, 2, 4})
    for (const int64_t pieces : {28, 48, 128}) EXPECT_EQ(linear_row_parts(512, pieces, threads), 1);
}

TEST(LinearRowParts, GivesEveryThreadOfALargeMachineItsWork) {
  EXPECT_EQ(linear_row_parts(512, 28, 64), 2);
  EXPECT_EQ(linear_row_parts(512, 28, 8), 2);  // seven pieces of half the rows and not four of all
  EXPECT_EQ(linear_row_parts(512, 48, 96), 2);
  EXPECT_EQ(linear_row_parts(512, 24, 96), 4);
  EXPECT_EQ(linear_row_parts(512, 96, 64), 2);  // three pieces of half the rows and not two of all
  EXPECT_EQ(linear_row_parts(512, 1, 64), 5);   // as many as there may be
  EXPECT_EQ(linear_row_parts(191, 1, 64), 1);   // too few rows for two
}

}  // namespace
}  // namespace tercet::backend
