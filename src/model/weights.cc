#include "model/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>
#include <set>

#include "base/float16.h"
#include "base/log.h"
#include "quant/codec.h"

namespace tercet::model {
namespace {

// Which rows of a tensor make a weight: those of `order`, or all.
struct Rows {
  int64_t in_file = 0;  // of the tensor; 0: as many as the weight has
  std::vector<int32_t> order;
};

// Rows [begin, begin + count) of a tensor of `in_file` rows, themselves in `order` where it is not empty.
Rows slice(int64_t in_file, int64_t begin, int64_t count, std::vector<int32_t> order = {}) {
  if (order.empty()) {
    order.resize(static_cast<size_t>(count));
    std::iota(order.begin(), order.end(), 0);
  }
  for (int32_t& row : order) row += static_cast<int32_t>(begin);
  return {in_file, std::move(order)};
}

std::vector<float> decode(DType type, std::span<const std::byte> data, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  quant::dequantize_row(type, data.data(), values.data(), count);
  return values;
}

backend::WeightSource f32_source(const std::string& name, int64_t outputs, int64_t inputs,
                                 const std::vector<float>& values) {
  return {name, DType::kF32, outputs, inputs, std::as_bytes(std::span(values)), {}};
}

class Loader {
 public:
  Loader(const DecoderSpec& spec, const TensorSource& source, backend::Device& device, ThreadPool& threads)
      : spec_(spec), source_(source), device_(device), threads_(threads) {}

  int64_t bytes() const { return bytes_; }

  // Weights that the family does not know would have changed what the model says.
  void warn_of_unused() const {
    std::vector<std::string> unused;
    for (const TensorInfo& tensor : source_.tensors())
      if (!used_.contains(tensor.name) && !tensor.name.starts_with("rope_f")) unused.push_back(tensor.name);
    if (!unused.empty())
      log_warning("{}: {} tensors are not used, {} among them: a feature of this model may be missing",
                  source_.path(), unused.size(), unused.front());
  }

  int64_t elements() const { return elements_; }
  static int64_t elements(const backend::Weight& weight) {
    return weight.outputs() * weight.inputs() * weight.stack_size();
  }
  bool has(const std::string& name) const { return source_.find(name) != nullptr; }

  Status matrix(WeightPtr& out, const std::string& name, int64_t outputs, int64_t inputs, Rows rows = {}) {
    const int64_t in_file = rows.in_file == 0 ? outputs : rows.in_file;
    TERCET_ASSIGN(const TensorInfo* tensor, find(name, {inputs, in_file}));
    TERCET_ASSIGN(const TensorData data, source_.read(*tensor));
    TERCET_ASSIGN(out, device_.pack({name, tensor->type, outputs, inputs, data.bytes, std::move(rows.order)},
                                    threads_));
    source_.release(*tensor);
    return count(out);
  }

  // A matrix as F32, whatever the file's type.
  Status widened_matrix(WeightPtr& out, const std::string& name, int64_t outputs, int64_t inputs) {
    TERCET_ASSIGN(const TensorInfo* tensor, find(name, {inputs, outputs}));
    TERCET_TRY(check_decodes(*tensor));
    TERCET_ASSIGN(const TensorData data, source_.read(*tensor));
    std::vector<float> values;
    const int64_t row_bytes = dtype_row_bytes(tensor->type, inputs);
    for (int64_t row = 0; row < outputs; ++row) {
      const auto decoded =
          decode(tensor->type, data.bytes.subspan(static_cast<size_t>(row * row_bytes)), inputs);
      values.insert(values.end(), decoded.begin(), decoded.end());
    }
    TERCET_ASSIGN(out, device_.pack(f32_source(name, outputs, inputs, values), threads_));
    source_.release(*tensor);
    return count(out);
  }

  // Matrix i is expert i of a tensor of `count` experts; or its rows `rows`.
  Status stack(WeightPtr& out, const std::string& name, int size, int64_t outputs, int64_t inputs,
               Rows rows = {}) {
    const int64_t in_file = rows.in_file == 0 ? outputs : rows.in_file;
    TERCET_ASSIGN(const TensorInfo* tensor, find(name, {inputs, in_file, size}));
    TensorData data;
    const auto expert = [&](int index) -> Result<backend::WeightSource> {
      if (index > 0) source_.release(*tensor, index - 1);
      TERCET_ASSIGN(data, source_.read(*tensor, index));
      return backend::WeightSource{name, tensor->type, outputs, inputs, data.bytes, rows.order};
    };
    TERCET_ASSIGN(out, device_.pack_stack(size, expert, threads_));
    source_.release(*tensor, size - 1);
    return count(out);
  }

  // `shape` in GGUF's order; its product is the vector's length when all rows are taken.
  Status vector(WeightPtr& out, const std::string& name, std::vector<int64_t> shape,
                const std::vector<int32_t>& order = {}) {
    TERCET_ASSIGN(const TensorInfo* tensor, find(name, shape));
    TERCET_TRY(check_decodes(*tensor));
    const int64_t size = tensor->elements();
    std::vector<float> values;
    for (int64_t expert = 0; expert < tensor->experts(); ++expert) {
      TERCET_ASSIGN(const TensorData data, source_.read(*tensor, expert));
      const auto decoded = decode(tensor->type, data.bytes, size / tensor->experts());
      values.insert(values.end(), decoded.begin(), decoded.end());
      source_.release(*tensor, expert);
    }
    std::vector<float> chosen;
    for (const int32_t i : order) chosen.push_back(values[static_cast<size_t>(i)]);
    const std::vector<float>& result = order.empty() ? values : chosen;
    TERCET_ASSIGN(out, device_.vector(f32_source(name, 1, static_cast<int64_t>(result.size()), result)));
    return count(out);
  }

  // NAME.weight, and NAME.bias where the file has it.
  Status linear(Linear& out, const std::string& name, int64_t outputs, int64_t inputs, Rows rows = {}) {
    const int64_t in_file = rows.in_file == 0 ? outputs : rows.in_file;
    if (has(name + ".bias")) TERCET_TRY(vector(out.bias, name + ".bias", {in_file}, rows.order));
    return matrix(out.weight, name + ".weight", outputs, inputs, std::move(rows));
  }

  // The same for a stack.
  Status linears(Linear& out, const std::string& name, int size, int64_t outputs, int64_t inputs) {
    if (has(name + ".bias")) TERCET_TRY(vector(out.bias, name + ".bias", {outputs, size}));
    return stack(out.weight, name + ".weight", size, outputs, inputs);
  }

  // W_UK^T and W_UV of each head, from the tensor whose rows are, head by head, W_UK's [nope_dim, kv_lora],
  // then W_UV's [v_dim, kv_lora]. Transposing needs single values: quantized ones become F32, the float types
  // stay as they are.
  Status split_kv_b(WeightPtr& k_b, WeightPtr& v_b, const std::string& name) {
    const MlaSpec& mla = *spec_.mla;
    const int64_t per_head = mla.nope_dim + mla.v_dim;
    TERCET_ASSIGN(const TensorInfo* tensor, find(name, {mla.kv_lora, per_head * spec_.num_heads}));
    TERCET_TRY(check_decodes(*tensor));
    TERCET_ASSIGN(const TensorData data, source_.read(*tensor));
    const int64_t row_bytes = dtype_row_bytes(tensor->type, mla.kv_lora);
    const auto head_rows = [&](int head, int64_t row) {
      return data.bytes.subspan(static_cast<size_t>((head * per_head + row) * row_bytes));
    };
    const auto v_source = [&](int head) -> Result<backend::WeightSource> {
      return backend::WeightSource{name, tensor->type, mla.v_dim, mla.kv_lora, head_rows(head, mla.nope_dim),
                                   {}};
    };
    std::vector<float> values;
    std::vector<uint16_t> halves;
    const auto k_source = [&](int head) -> Result<backend::WeightSource> {
      values.assign(static_cast<size_t>(int64_t{mla.kv_lora} * mla.nope_dim), 0);
      for (int64_t row = 0; row < mla.nope_dim; ++row) {
        const auto decoded = decode(tensor->type, head_rows(head, row), mla.kv_lora);
        for (int64_t i = 0; i < mla.kv_lora; ++i)
          values[static_cast<size_t>(i * mla.nope_dim + row)] = decoded[static_cast<size_t>(i)];
      }
      if (tensor->type != DType::kBF16 && tensor->type != DType::kF16)
        return f32_source(name, mla.kv_lora, mla.nope_dim, values);
      halves.clear();
      for (const float value : values)
        halves.push_back(tensor->type == DType::kF16 ? f32_to_f16(value) : f32_to_bf16(value));
      return backend::WeightSource{
          name, tensor->type, mla.kv_lora, mla.nope_dim, std::as_bytes(std::span(halves)), {}};
    };
    TERCET_ASSIGN(k_b, device_.pack_stack(spec_.num_heads, k_source, threads_));
    TERCET_ASSIGN(v_b, device_.pack_stack(spec_.num_heads, v_source, threads_));
    source_.release(*tensor);
    TERCET_TRY(count(k_b));
    return count(v_b);
  }

  // The order of `heads` heads of `head_dim` rows of which the first `dims` are rotated, with a head of the
  // file being `stride` rows from the next: row i of the rotated part's first half is the file's row 2 i, of
  // its second half 2 i + 1. Empty when the rows lie as they should.
  std::vector<int32_t> head_order(int heads, int head_dim, int dims, int stride) const {
    const bool interleaved = spec_.file_interleaves_rotary_pairs;
    std::vector<int32_t> order;
    if (!interleaved && stride == head_dim) return order;
    for (int head = 0; head < heads; ++head) {
      for (int i = 0; i < head_dim; ++i) {
        const int half = dims / 2;
        const int from = !interleaved || i >= dims ? i : i < half ? 2 * i : 2 * (i - half) + 1;
        order.push_back(head * stride + from);
      }
    }
    return order;
  }

 private:
  Result<const TensorInfo*> find(const std::string& name, const std::vector<int64_t>& shape) {
    const TensorInfo* tensor = source_.find(name);
    if (tensor == nullptr)
      return Error{ErrorCode::kCorrupt, fmt::format("the tensor {} is missing", name), source_.path()};
    // GGUF writes no trailing dimension of 1.
    std::vector<int64_t> found = tensor->shape;
    found.resize(std::max(found.size(), shape.size()), 1);
    std::vector<int64_t> wanted = shape;
    wanted.resize(found.size(), 1);
    if (found != wanted)
      return Error{ErrorCode::kCorrupt,
                   fmt::format("the tensor {} is [{}], expected [{}]", name, fmt::join(tensor->shape, ", "),
                               fmt::join(shape, ", ")),
                   source_.path()};
    used_.insert(name);
    return tensor;
  }

  Status check_decodes(const TensorInfo& tensor) const {
    if (quant::can_dequantize(tensor.type)) return {};
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("the tensor {} has type {}, expected a float type", tensor.name, dtype_name(tensor.type)),
        source_.path()};
  }

  Status count(const WeightPtr& weight) {
    bytes_ += weight->bytes();
    elements_ += elements(*weight);
    return {};
  }

  const DecoderSpec& spec_;
  const TensorSource& source_;
  backend::Device& device_;
  ThreadPool& threads_;
  std::set<std::string, std::less<>> used_;
  int64_t bytes_ = 0;
  int64_t elements_ = 0;
};

// q, k and v, each a tensor of its own or rows of one.
Status load_qkv(Loader& load, const DecoderSpec& spec, const std::string& prefix, LayerWeights& layer) {
  const int dims = spec.ropes.empty() ? 0 : spec.ropes[0].dims;
  const auto q_order = load.head_order(spec.num_heads, spec.head_dim, dims, spec.head_dim);
  const auto k_order = load.head_order(spec.num_kv_heads, spec.head_dim, dims, spec.head_dim);
  const int64_t q = spec.q_dim(), k = spec.k_row_dim(), v = spec.v_row_dim();
  if (load.has(prefix + "attn_qkv.weight")) {
    const std::string name = prefix + "attn_qkv";
    TERCET_TRY(load.linear(layer.q, name, q, spec.dim, slice(q + k + v, 0, q, q_order)));
    TERCET_TRY(load.linear(layer.k, name, k, spec.dim, slice(q + k + v, q, k, k_order)));
    TERCET_TRY(load.linear(layer.v, name, v, spec.dim, slice(q + k + v, q + k, v)));
  } else {
    TERCET_TRY(load.linear(layer.q, prefix + "attn_q", q, spec.dim, {q, q_order}));
    TERCET_TRY(load.linear(layer.k, prefix + "attn_k", k, spec.dim, {k, k_order}));
    TERCET_TRY(load.linear(layer.v, prefix + "attn_v", v, spec.dim));
  }
  if (spec.needs_qkv_bias && (!layer.q.bias || !layer.k.bias || !layer.v.bias))
    return Error{ErrorCode::kCorrupt, "the biases of q, k and v, which this family has, are missing",
                 prefix + "attn_q.bias"};
  if (spec.qk_norm == QkNorm::kNone) return {};
  const bool per_head = spec.qk_norm == QkNorm::kPerHead;
  const auto norm_order = [&](int heads) {
    return load.head_order(per_head ? 1 : heads, spec.head_dim, dims, spec.head_dim);
  };
  TERCET_TRY(load.vector(layer.q_norm, prefix + "attn_q_norm.weight", {per_head ? spec.head_dim : q},
                         norm_order(spec.num_heads)));
  return load.vector(layer.k_norm, prefix + "attn_k_norm.weight", {per_head ? spec.head_dim : k},
                     norm_order(spec.num_kv_heads));
}

Status load_latent_attention(Loader& load, const DecoderSpec& spec, const std::string& prefix,
                             LayerWeights& layer) {
  const MlaSpec& mla = *spec.mla;
  const int heads = spec.num_heads, per_head = mla.nope_dim + mla.rope_dim;
  std::string q_name = prefix + "attn_q";
  int64_t q_inputs = spec.dim;
  if (mla.q_lora > 0) {
    TERCET_TRY(load.linear(layer.q_a, prefix + "attn_q_a", mla.q_lora, spec.dim));
    TERCET_TRY(load.vector(layer.q_a_norm, prefix + "attn_q_a_norm.weight", {mla.q_lora}));
    q_name = prefix + "attn_q_b";
    q_inputs = mla.q_lora;
  }
  const int64_t q_rows = int64_t{heads} * per_head, kv_rows = mla.kv_lora + mla.rope_dim;
  const int64_t nope_rows = int64_t{heads} * mla.nope_dim, rope_rows = int64_t{heads} * mla.rope_dim;
  TERCET_TRY(load.linear(layer.q_nope, q_name, nope_rows, q_inputs,
                         slice(q_rows, 0, nope_rows, load.head_order(heads, mla.nope_dim, 0, per_head))));
  TERCET_TRY(load.linear(
      layer.q_rope, q_name, rope_rows, q_inputs,
      slice(q_rows, mla.nope_dim, rope_rows, load.head_order(heads, mla.rope_dim, mla.rope_dim, per_head))));
  const std::string kv_name = prefix + "attn_kv_a_mqa";
  TERCET_TRY(load.linear(layer.kv_latent, kv_name, mla.kv_lora, spec.dim, slice(kv_rows, 0, mla.kv_lora)));
  TERCET_TRY(load.linear(layer.k_rope, kv_name, mla.rope_dim, spec.dim,
                         slice(kv_rows, mla.kv_lora, mla.rope_dim,
                               load.head_order(1, mla.rope_dim, mla.rope_dim, mla.rope_dim))));
  TERCET_TRY(load.vector(layer.kv_a_norm, prefix + "attn_kv_a_norm.weight", {mla.kv_lora}));
  if (load.has(prefix + "attn_kv_b.weight"))
    return load.split_kv_b(layer.k_b, layer.v_b, prefix + "attn_kv_b.weight");
  TERCET_TRY(load.stack(layer.k_b, prefix + "attn_k_b.weight", heads, mla.kv_lora, mla.nope_dim));
  return load.stack(layer.v_b, prefix + "attn_v_b.weight", heads, mla.v_dim, mla.kv_lora);
}

// `suffix` as in Decoder::mlp. Without a tensor for the gate, `ffn_up` holds the gate's rows, then its own.
Status load_mlp(Loader& load, const DecoderSpec& spec, const std::string& prefix, const std::string& suffix,
                int64_t ffn_dim, MlpWeights& mlp) {
  const std::string gate = prefix + "ffn_gate" + suffix, up = prefix + "ffn_up" + suffix;
  if (load.has(gate + ".weight")) {
    TERCET_TRY(load.linear(mlp.gate, gate, ffn_dim, spec.dim));
    TERCET_TRY(load.linear(mlp.up, up, ffn_dim, spec.dim));
  } else {
    TERCET_TRY(load.linear(mlp.gate, up, ffn_dim, spec.dim, slice(2 * ffn_dim, 0, ffn_dim)));
    TERCET_TRY(load.linear(mlp.up, up, ffn_dim, spec.dim, slice(2 * ffn_dim, ffn_dim, ffn_dim)));
  }
  return load.linear(mlp.down, prefix + "ffn_down" + suffix, spec.dim, ffn_dim);
}

Status load_mixture(Loader& load, const DecoderSpec& spec, const std::string& prefix, LayerWeights& layer) {
  const MoeSpec& moe = *spec.moe;
  const int size = moe.router.num_experts;
  // Rounding must not choose the experts.
  TERCET_TRY(load.widened_matrix(layer.router.weight, prefix + "ffn_gate_inp.weight", size, spec.dim));
  if (load.has(prefix + "ffn_gate_inp.bias"))
    TERCET_TRY(load.vector(layer.router.bias, prefix + "ffn_gate_inp.bias", {size}));
  if (load.has(prefix + "exp_probs_b.bias"))
    TERCET_TRY(load.vector(layer.router_correction, prefix + "exp_probs_b.bias", {size}));
  const std::string gate_up = prefix + "ffn_gate_up_exps.weight";
  if (load.has(gate_up)) {
    TERCET_TRY(load.stack(layer.experts.gate.weight, gate_up, size, moe.ffn_dim, spec.dim,
                          slice(2 * moe.ffn_dim, 0, moe.ffn_dim)));
    TERCET_TRY(load.stack(layer.experts.up.weight, gate_up, size, moe.ffn_dim, spec.dim,
                          slice(2 * moe.ffn_dim, moe.ffn_dim, moe.ffn_dim)));
  } else {
    TERCET_TRY(load.linears(layer.experts.gate, prefix + "ffn_gate_exps", size, moe.ffn_dim, spec.dim));
    TERCET_TRY(load.linears(layer.experts.up, prefix + "ffn_up_exps", size, moe.ffn_dim, spec.dim));
  }
  return load.linears(layer.experts.down, prefix + "ffn_down_exps", size, spec.dim, moe.ffn_dim);
}

Status load_norms(Loader& load, const DecoderSpec& spec, const std::string& prefix, LayerWeights& layer) {
  const std::string attn_post = prefix + "post_attention_norm.weight";
  if (spec.has_pre_norms) {
    TERCET_TRY(load.vector(layer.attn_norm, prefix + "attn_norm.weight", {spec.dim}));
    // gpt-oss names the norm before its MLP by where it is: after attention.
    const bool by_place = !spec.has_post_norms && load.has(attn_post);
    TERCET_TRY(load.vector(layer.ffn_norm, by_place ? attn_post : prefix + "ffn_norm.weight", {spec.dim}));
  }
  if (!spec.has_post_norms) return {};
  TERCET_TRY(load.vector(layer.attn_post_norm, attn_post, {spec.dim}));
  return load.vector(layer.ffn_post_norm, prefix + "post_ffw_norm.weight", {spec.dim});
}

Status load_layer(Loader& load, const DecoderSpec& spec, int index, DecoderWeights& weights) {
  const std::string prefix = fmt::format("blk.{}.", index);
  LayerWeights& layer = weights.layers.emplace_back();
  TERCET_TRY(load_norms(load, spec, prefix, layer));
  TERCET_TRY(spec.mla ? load_latent_attention(load, spec, prefix, layer)
                      : load_qkv(load, spec, prefix, layer));
  TERCET_TRY(load.linear(layer.attn_out, prefix + "attn_output", spec.dim, spec.attention_dim()));
  if (spec.has_sinks) TERCET_TRY(load.vector(layer.sinks, prefix + "attn_sinks.weight", {spec.num_heads}));
  if (!spec.layers[static_cast<size_t>(index)].moe)
    return load_mlp(load, spec, prefix, "", spec.ffn_dim, layer.mlp);
  TERCET_TRY(load_mixture(load, spec, prefix, layer));
  for (const Linear* linear : {&layer.experts.gate, &layer.experts.up, &layer.experts.down}) {
    weights.expert_bytes += linear->weight->bytes();
    weights.expert_elements += Loader::elements(*linear->weight);
  }
  if (spec.moe->shared_ffn_dim == 0) return {};
  return load_mlp(load, spec, prefix, "_shexp", spec.moe->shared_ffn_dim, layer.shared);
}

}  // namespace

Result<DecoderWeights> load_weights(const DecoderSpec& spec, const TensorSource& source,
                                    backend::Device& device, ThreadPool& threads,
                                    const LoadProgress& progress) {
  Loader load(spec, source, device, threads);
  DecoderWeights weights;
  TERCET_TRY(load.matrix(weights.embedding, "token_embd.weight", spec.vocab_size, spec.dim));
  TERCET_TRY(load.vector(weights.output_norm, "output_norm.weight", {spec.dim}));
  if (load.has("output.weight"))
    TERCET_TRY(load.matrix(weights.output, "output.weight", spec.vocab_size, spec.dim));
  for (int i = 0; i < spec.num_layers(); ++i) {
    if (progress) progress(i, spec.num_layers());
    TERCET_TRY(load_layer(load, spec, i, weights));
  }
  if (progress) progress(spec.num_layers(), spec.num_layers());
  weights.bytes = load.bytes();
  load.warn_of_unused();
  weights.elements = load.elements();
  return weights;
}

}  // namespace tercet::model
