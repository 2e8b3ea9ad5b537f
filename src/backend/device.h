// The seam between models and hardware. A Device owns memory: weights in its own layout, buffers, the KV
// store. A Stream runs operators on that memory, one after another, with a pool of threads; two streams of a
// device may run at once (a prefill and a decode pool). Nothing outside backend/ dereferences device memory:
// a Matrix is a handle.
//
// Operators return the same bits whatever the number of rows beside a row, the threads, or the instruction
// set (docs/arithmetic.md). They cannot fail on valid shapes (TERCET_CHECK); values that are not finite are
// remembered and reported by Stream::take_non_finite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "kv/step_batch.h"
#include "tensor/dtype.h"

namespace tercet::backend {

enum class Activation : uint8_t {
  kSilu,
  kGeluTanh,
  // gpt-oss: g = min(gate, 7), u = clip(up, -7, 7), and (u + 1) * g * sigmoid(1.702 g).
  kClampedSwiGlu,
};
inline constexpr float kSwiGluAlpha = 1.702f;
inline constexpr float kSwiGluLimit = 7.0f;
// kInt8 has one scale for each token and head; kE4M3 and kE5M2 are FP8 and saturate.
enum class KvType : uint8_t { kF32, kF16, kBF16, kInt8, kE4M3, kE5M2 };

// Float32 rows in device memory: [rows, cols], dense.
struct Matrix {
  float* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;

  // The same memory as rows of another length.
  Matrix reshaped(int64_t new_rows, int64_t new_cols) const { return {data, new_rows, new_cols}; }
};

// Device memory for one matrix that grows on demand. Its contents are undefined after growing.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual Matrix view(int64_t rows, int64_t cols) = 0;
};

// A weight as a file holds it. Row i of the weight is row row_order[i] of the file when row_order is given.
struct WeightSource {
  std::string name;
  DType type = DType::kF32;
  int64_t outputs = 0;
  int64_t inputs = 0;
  std::span<const std::byte> data;  // rows of dtype_row_bytes(type, inputs)
  std::vector<int32_t> row_order;
};

// One matrix of a stack; what it points to stays valid until the next call.
using StackSource = std::function<Result<WeightSource>(int index)>;

// A weight in the device's layout: a matrix for linear layers and embeddings, a stack of matrices of one
// shape and type (the experts of a layer, the heads of latent attention), or a vector (norms, biases).
class Weight {
 public:
  virtual ~Weight() = default;
  virtual int stack_size() const = 0;  // 1 for a single matrix
  // Of one matrix.
  virtual int64_t outputs() const = 0;
  virtual int64_t inputs() const = 0;
  virtual int64_t bytes() const = 0;
};

// out = x weight^T + bias, or with `up`, of the same shape, out = act(x weight^T + bias, x up^T + up_bias).
struct LinearTerm {
  const Weight* weight = nullptr;
  const Weight* bias = nullptr;  // a vector, [stack_size, outputs], or none
  Matrix out;                    // [rows, outputs]
  const Weight* up = nullptr;
  const Weight* up_bias = nullptr;
  Activation activation = Activation::kSilu;
};

struct KvLayerSpec {
  int group = 0;
  int num_kv_heads = 0;
  int k_dim = 0;  // of a head
  int v_dim = 0;
};
struct KvStoreSpec {
  std::vector<KvLayerSpec> layers;
  std::vector<int> group_blocks;  // blocks in each group's pool
  KvType type = KvType::kF16;
};
// Bytes that a block of the layer's group takes in the layer: K, V, and both together.
int64_t k_block_bytes(const KvLayerSpec& layer, KvType type);
int64_t v_block_bytes(const KvLayerSpec& layer, KvType type);
int64_t kv_block_bytes(const KvLayerSpec& layer, KvType type);

// Memory of one layer's K or V: block b lies at [base + b * stride, base + b * stride + bytes).
struct KvRegion {
  std::byte* base = nullptr;
  int64_t stride = 0;
  int64_t bytes = 0;
};

// The tensors behind the block ids of the KV pools.
class KvStore {
 public:
  virtual ~KvStore() = default;
  virtual const KvStoreSpec& spec() const = 0;
  virtual KvRegion k_region(int layer) const = 0;
  virtual KvRegion v_region(int layer) const = 0;
  int64_t bytes() const;
};

struct AttentionSpec {
  int num_heads = 0;
  float scale = 1;
  float soft_cap = 0;  // 0: none
  int window = 0;      // 0: none; else a row at p reads (p - window, p]
  // [num_heads] or none: logits of a key that every row of the head attends to and whose value is zero.
  const Weight* sinks = nullptr;
};

// How a mixture of experts chooses. The order is total everywhere: score descending, expert ascending.
struct RouterSpec {
  enum class Scores : uint8_t {
    kSoftmax,          // over all experts
    kSoftmaxOfChosen,  // the largest logits are chosen, and their softmax among themselves weighs them
    kSigmoid,
  };
  enum class GroupScore : uint8_t { kBest, kSumOfTwoBest };
  Scores scores = Scores::kSoftmax;
  int num_experts = 0;
  int num_used = 0;  // experts of a row
  // Experts lie in groups of equal size, of which the best num_groups_used stay in the choice.
  int num_groups = 1;
  int num_groups_used = 1;
  GroupScore group_score = GroupScore::kBest;
  bool normalize = false;  // weights are divided by their sum
  float scale = 1;         // and multiplied by this
};

// Which matrix of a stack each row is for. Device memory; filled by Stream::route or route_heads.
class Routes {
 public:
  virtual ~Routes() = default;
};

class Stream {
 public:
  virtual ~Stream() = default;

  // out[r] = table[tokens[r]] * scale.
  virtual void embed(const Weight& table, std::span<const int32_t> tokens, float scale, Matrix out) = 0;
  // out = x / rms(x) * weight, row by row; out may be x.
  virtual void rms_norm(Matrix x, const Weight& weight, float eps, Matrix out) = 0;
  // Terms share the quantized x.
  virtual void linear(Matrix x, std::span<const LinearTerm> terms) = 0;
  // Rotates the first 2 * half elements of each head of each row, the others stay: x [rows, heads *
  // head_dim]; angles [rows, 2 * half]: cosines, then sines.
  virtual void rope(Matrix x, int head_dim, Matrix angles) = 0;
  virtual void add(Matrix x, Matrix y) = 0;  // x += y
  virtual void scale(Matrix x, float factor) = 0;
  virtual void soft_cap(Matrix x, float cap) = 0;
  // out[i] = x[rows[i]].
  virtual void gather(Matrix x, std::span<const int32_t> rows, Matrix out) = 0;
  // out[r] = a[r], then b[r].
  virtual void concat(Matrix a, Matrix b, Matrix out) = 0;

  // Chooses spec.num_used experts for each row of `logits` [rows, num_experts]. `correction`, [num_experts]
  // or none, is added to the scores for the choice, not for the weights.
  virtual void route(Matrix logits, const RouterSpec& spec, const Weight* correction, Routes& routes) = 0;
  // Row r of `num_rows` is for matrix r % num_heads, with weight 1.
  virtual void route_heads(int64_t num_rows, int num_heads, Routes& routes) = 0;
  // The routed copies of the rows of x, grouped by matrix: out [rows * used, cols].
  virtual void scatter_to_routes(Matrix x, const Routes& routes, Matrix out) = 0;
  // linear() for such rows: each is multiplied with the matrix that it is for.
  virtual void linear_by_route(Matrix x, const Routes& routes, std::span<const LinearTerm> terms) = 0;
  // out[r] = the sum over row r's copies, in ascending order of their matrices, of weight * x[copy].
  virtual void gather_from_routes(Matrix x, const Routes& routes, Matrix out) = 0;

  // Zeroes the batch's new blocks; comes before the first store_kv of a step.
  virtual void prepare_kv(KvStore& kv, const kv::StepBatch& batch) = 0;
  // k: [rows, kv_heads * k_dim], v: [rows, kv_heads * v_dim], rounded to the KV type into the blocks of the
  // rows' positions.
  virtual void store_kv(KvStore& kv, int layer, Matrix k, Matrix v, const kv::StepBatch& batch) = 0;
  // q: [rows, heads * k_dim], out: [rows, heads * v_dim]. Reads K and V from the store only.
  virtual void attention(KvStore& kv, int layer, Matrix q, const kv::StepBatch& batch,
                         const AttentionSpec& spec, Matrix out) = 0;

  virtual void upload(std::span<const float> values, Matrix to) = 0;
  virtual void download(Matrix from, std::span<float> values) = 0;

  // True when an operator since the last call met a value that is not finite.
  virtual bool take_non_finite() = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string description() const = 0;
  // Bytes that pack() will take for a matrix, and whether the type can be computed at all.
  virtual Result<int64_t> packed_bytes(DType type, int64_t outputs, int64_t inputs) const = 0;
  virtual Result<std::unique_ptr<Weight>> pack(const WeightSource& source, ThreadPool& threads) = 0;
  // Matrix i is source(i); all have the first one's shape and type.
  virtual Result<std::unique_ptr<Weight>> pack_stack(int stack_size, const StackSource& source,
                                                     ThreadPool& threads) = 0;
  // A vector of float32, as a weight of one row.
  virtual Result<std::unique_ptr<Weight>> vector(const WeightSource& source) = 0;
  virtual std::unique_ptr<Buffer> buffer() = 0;
  virtual std::unique_ptr<Routes> routes() = 0;
  virtual Result<std::unique_ptr<KvStore>> kv_store(const KvStoreSpec& spec) = 0;
  virtual std::unique_ptr<Stream> stream(ThreadPool& threads) = 0;
};

}  // namespace tercet::backend
