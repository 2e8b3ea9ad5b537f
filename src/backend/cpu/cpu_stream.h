// The CPU stream: operators cut into pieces for the thread pool, each piece one kernel call. How a loop is
// cut never shows in the result.
#pragma once

#include <atomic>
#include <vector>

#include "backend/cpu/cpu_attention.h"
#include "backend/cpu/cpu_buffer.h"
#include "backend/cpu/cpu_weight.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/prefetch_trial.h"
#include "backend/device.h"

namespace tercet::backend {

// Panels of a piece of a linear layer over `rows` rows: as many as share work, yet no more than leave each
// thread its part of the layer.
int64_t linear_grain(int64_t panels, int64_t panel_bytes, int64_t rows, int num_threads);

// Into how many parts `rows` rows are cut as well, so that the fewest threads wait for others: 1 but where a
// layer has few pieces for its threads.
int64_t linear_row_parts(int64_t rows, int64_t pieces, int num_threads);

class CpuStream final : public Stream {
 public:
  CpuStream(const Kernels& kernels, ThreadPool& threads)
      : kernels_(kernels), threads_(threads), products_(static_cast<size_t>(threads.num_threads())) {}

  void embed(const Weight& table, std::span<const int32_t> tokens, float scale, Matrix out) override;
  void rms_norm(Matrix x, const Weight& weight, float eps, Matrix out) override;
  void linear(Matrix x, std::span<const LinearTerm> terms) override;
  void rope(Matrix x, int head_dim, Matrix angles) override;
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
    CpuBuffer memory;
    int8_t* q = nullptr;
    float* d = nullptr;
    int32_t* sums = nullptr;
    void reserve(int64_t rows, int64_t cols, int block);
  };
  void for_rows(int64_t rows, int64_t work_per_row, const std::function<void(int64_t row)>& body);
  // x, its rows in groups of their own matrices; and x as the weights want it, once one of them did.
  struct LinearInput {
    Matrix x;
    std::span<const int32_t> starts;                         // the groups' first rows, and the end
    std::vector<QuantizedRows> quantized_32, quantized_256;  // of each group
    Matrix rounded = {};                                     // to BF16
    Prefetch prefetch = {};

    std::vector<QuantizedRows>& quantized(int block) { return block == 32 ? quantized_32 : quantized_256; }
  };
  // One matrix that a group's rows are multiplied with.
  struct LinearFactor {
    const CpuWeight* weight = nullptr;
    const std::byte* panels = nullptr;
    const float* bias = nullptr;
    const QuantizedRows* quantized = nullptr;  // null for float weights
  };
  // Some panels of a term's matrices, times the rows of its group, or from one of them on a part.
  struct LinearPiece {
    LinearFactor weight, up;  // up: where the term has one
    Activation activation;
    int64_t first_row, rows, panel_begin, panel_end;
    int64_t skipped_rows;  // of the group
    Matrix out;
  };
  void quantize(LinearInput& in, int block);
  Matrix round_bf16(Matrix x);
  void prepare(LinearInput& in, const CpuWeight& weight);
  LinearFactor factor(LinearInput& in, const Weight& weight, const Weight* bias, size_t group) const;
  void add_pieces(LinearInput& in, const LinearTerm& term);
  void cut_rows(int64_t most_rows);
  void multiply(const LinearInput& in, const LinearFactor& factor, const LinearPiece& piece, float* y,
                int64_t y_stride) const;
  void run(const LinearInput& in, const LinearPiece& piece, CpuBuffer& products) const;
  void linear(LinearInput& in, std::span<const LinearTerm> terms);
  void run_pieces(const LinearInput& in);

  const Kernels& kernels_;
  ThreadPool& threads_;
  PrefetchTrial prefetch_trials_[2];  // for rows that only wait for weights, and for a few more
  QuantizedStorage quantized_[2];     // blocks of 32 and of 256
  std::vector<LinearPiece> pieces_;
  std::vector<CpuBuffer> products_;  // of each thread, those that its piece gates
  CpuBuffer rounded_;
  AttentionScratch attention_scratch_;
  std::atomic<bool> non_finite_{false};
};

}  // namespace tercet::backend
