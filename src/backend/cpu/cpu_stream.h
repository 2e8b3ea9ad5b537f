// The CPU stream: operators cut into pieces for the thread pool, each piece one kernel call. How a loop is
// cut never shows in the result.
#pragma once

#include <atomic>
#include <vector>

#include "backend/cpu/cpu_attention.h"
#include "backend/cpu/cpu_weight.h"
#include "backend/cpu/kernels.h"
#include "backend/device.h"

namespace tercet::backend {

class CpuStream final : public Stream {
 public:
  CpuStream(const Kernels& kernels, ThreadPool& threads) : kernels_(kernels), threads_(threads) {}

  void embed(const Weight& table, std::span<const int32_t> tokens, float scale, Matrix out) override;
  void rms_norm(Matrix x, const Weight& weight, float eps, Matrix out) override;
  void linear(Matrix x, std::span<const LinearTerm> terms) override;
  void rope(Matrix x, int head_dim, Matrix angles) override;
  void gate(Activation activation, Matrix gate, Matrix up) override;
  void add(Matrix x, Matrix y) override;
  void scale(Matrix x, float factor) override;
  void soft_cap(Matrix x, float cap) override;
  void gather(Matrix x, std::span<const int32_t> rows, Matrix out) override;
  void concat(Matrix a, Matrix b, Matrix out) override;
  void route(Matrix logits, const RouterSpec& spec, const Weight* correction, Routes& routes) override;
  void route_heads(int64_t num_rows, int num_heads, Routes& routes) override;
  void scatter_to_routes(Matrix x, const Routes& routes, Matrix out) override;
  void linear_by_route(Matrix x, const Routes& routes, std::span<const LinearTerm> terms) override;
  void gather_from_routes(Matrix x, const Routes& routes, Matrix out) override;
  void prepare_kv(KvStore& kv, const kv::StepBatch& batch) override;
  void store_kv(KvStore& kv, int layer, Matrix k, Matrix v, const kv::StepBatch& batch) override;
  void attention(KvStore& kv, int layer, Matrix q, const kv::StepBatch& batch, const AttentionSpec& spec,
                 Matrix out) override;
  void upload(std::span<const float> values, Matrix to) override;
  void download(Matrix from, std::span<float> values) override;
  bool take_non_finite() override { return non_finite_.exchange(false); }

 private:
  // Backing store of QuantizedRows.
  struct QuantizedStorage {
    std::vector<int8_t> q;
    std::vector<float> d;
    std::vector<int32_t> sums;
    void grow(int64_t rows, int64_t cols, int block);
  };
  void for_rows(int64_t rows, int64_t work_per_row, const std::function<void(int64_t row)>& body);
  // x, its rows in groups of their own matrices; and x as the weights want it, once one of them did.
  struct LinearInput {
    Matrix x;
    std::span<const int32_t> starts;                         // the groups' first rows, and the end
    std::vector<QuantizedRows> quantized_32, quantized_256;  // of each group
    Matrix rounded = {};                                     // to BF16

    std::vector<QuantizedRows>& quantized(int block) { return block == 32 ? quantized_32 : quantized_256; }
  };
  // Some panels of one matrix, times the rows of its group.
  struct LinearPiece {
    const CpuWeight* weight;
    LinearTask task;
    int64_t first_row;
    const QuantizedRows* quantized;  // null for float weights
  };
  void quantize(LinearInput& in, int block);
  Matrix round_bf16(Matrix x);
  void add_pieces(LinearInput& in, const LinearTerm& term);
  void multiply(const LinearInput& in, const LinearPiece& piece) const;
  void linear(LinearInput& in, std::span<const LinearTerm> terms);

  const Kernels& kernels_;
  ThreadPool& threads_;
  QuantizedStorage quantized_[2];  // blocks of 32 and of 256
  std::vector<LinearPiece> pieces_;
  std::vector<float> rounded_;
  AttentionScratch attention_scratch_;
  std::atomic<bool> non_finite_{false};
};

}  // namespace tercet::backend
