#include "model/weights.h"

#include <fmt/format.h>

namespace tercet::model {
namespace {

class Loader {
 public:
  Loader(const DecoderSpec& spec, const TensorSource& source, backend::Device& device, ThreadPool& threads)
      : spec_(spec), source_(source), device_(device), threads_(threads) {}

  // `rotary_heads`: rows are that many heads whose rotary pairs the file may interleave; 0: they are not.
  Status matrix(WeightPtr& out, const std::string& name, int64_t outputs, int64_t inputs,
                int rotary_heads = 0) {
    TERCET_ASSIGN(const TensorInfo* tensor, find(name, outputs, inputs));
    TERCET_ASSIGN(const TensorData data, source_.read(*tensor));
    TERCET_ASSIGN(
        out,
        device_.pack({name, tensor->type, outputs, inputs, data.bytes, row_order(rotary_heads)}, threads_));
    source_.release(*tensor);
    return {};
  }

  Status vector(WeightPtr& out, const std::string& name, int64_t size) {
    TERCET_ASSIGN(const TensorInfo* tensor, find(name, 1, size));
    TERCET_ASSIGN(const TensorData data, source_.read(*tensor));
    TERCET_ASSIGN(out, device_.vector({name, tensor->type, 1, size, data.bytes, {}}));
    source_.release(*tensor);
    return {};
  }

  bool has(const std::string& name) const { return source_.find(name) != nullptr; }

 private:
  Result<const TensorInfo*> find(const std::string& name, int64_t outputs, int64_t inputs) const {
    const TensorInfo* tensor = source_.find(name);
    if (tensor == nullptr)
      return Error{ErrorCode::kCorrupt, fmt::format("the tensor {} is missing", name), source_.path()};
    if (tensor->outputs() != outputs || tensor->inputs() != inputs || tensor->experts() != 1)
      return Error{ErrorCode::kCorrupt,
                   fmt::format("the tensor {} is [{}], expected [{}, {}]", name,
                               fmt::join(tensor->shape, ", "), inputs, outputs),
                   source_.path()};
    return tensor;
  }

  // Row i of a head's first half is the file's row 2 i, of its second half 2 i + 1.
  std::vector<int32_t> row_order(int rotary_heads) const {
    std::vector<int32_t> order;
    if (rotary_heads == 0 || !spec_.file_interleaves_rotary_pairs) return order;
    const int half = spec_.head_dim / 2;
    for (int head = 0; head < rotary_heads; ++head)
      for (int part = 0; part < 2; ++part)
        for (int i = 0; i < half; ++i) order.push_back(head * spec_.head_dim + 2 * i + part);
    return order;
  }

  const DecoderSpec& spec_;
  const TensorSource& source_;
  backend::Device& device_;
  ThreadPool& threads_;
};

Status load_layer(Loader& load, const DecoderSpec& spec, int index, LayerWeights& layer) {
  const std::string prefix = fmt::format("blk.{}.", index);
  TERCET_TRY(load.vector(layer.attn_norm, prefix + "attn_norm.weight", spec.dim));
  TERCET_TRY(load.matrix(layer.q, prefix + "attn_q.weight", spec.q_dim(), spec.dim, spec.num_heads));
  TERCET_TRY(load.matrix(layer.k, prefix + "attn_k.weight", spec.kv_dim(), spec.dim, spec.num_kv_heads));
  TERCET_TRY(load.matrix(layer.v, prefix + "attn_v.weight", spec.kv_dim(), spec.dim));
  if (spec.has_qkv_bias) {
    TERCET_TRY(load.vector(layer.q_bias, prefix + "attn_q.bias", spec.q_dim()));
    TERCET_TRY(load.vector(layer.k_bias, prefix + "attn_k.bias", spec.kv_dim()));
    TERCET_TRY(load.vector(layer.v_bias, prefix + "attn_v.bias", spec.kv_dim()));
  }
  if (spec.has_qk_norm) {
    TERCET_TRY(load.vector(layer.q_norm, prefix + "attn_q_norm.weight", spec.head_dim));
    TERCET_TRY(load.vector(layer.k_norm, prefix + "attn_k_norm.weight", spec.head_dim));
  }
  TERCET_TRY(load.matrix(layer.attn_out, prefix + "attn_output.weight", spec.dim, spec.q_dim()));
  if (spec.has_post_norms) {
    TERCET_TRY(load.vector(layer.attn_post_norm, prefix + "post_attention_norm.weight", spec.dim));
    TERCET_TRY(load.vector(layer.ffn_post_norm, prefix + "post_ffw_norm.weight", spec.dim));
  }
  TERCET_TRY(load.vector(layer.ffn_norm, prefix + "ffn_norm.weight", spec.dim));
  TERCET_TRY(load.matrix(layer.gate, prefix + "ffn_gate.weight", spec.ffn_dim, spec.dim));
  TERCET_TRY(load.matrix(layer.up, prefix + "ffn_up.weight", spec.ffn_dim, spec.dim));
  TERCET_TRY(load.matrix(layer.down, prefix + "ffn_down.weight", spec.dim, spec.ffn_dim));
  return {};
}

}  // namespace

int64_t DecoderWeights::bytes() const {
  int64_t total = 0;
  const auto count = [&](const WeightPtr& weight) { total += weight == nullptr ? 0 : weight->bytes(); };
  count(embedding), count(output), count(output_norm);
  for (const LayerWeights& l : layers)
    for (const WeightPtr* weight :
         {&l.attn_norm, &l.q, &l.k, &l.v, &l.q_bias, &l.k_bias, &l.v_bias, &l.q_norm, &l.k_norm, &l.attn_out,
          &l.attn_post_norm, &l.ffn_norm, &l.gate, &l.up, &l.down, &l.ffn_post_norm})
      count(*weight);
  return total;
}

Result<DecoderWeights> load_weights(const DecoderSpec& spec, const TensorSource& source,
                                    backend::Device& device, ThreadPool& threads,
                                    const LoadProgress& progress) {
  Loader load(spec, source, device, threads);
  DecoderWeights weights;
  TERCET_TRY(load.matrix(weights.embedding, "token_embd.weight", spec.vocab_size, spec.dim));
  TERCET_TRY(load.vector(weights.output_norm, "output_norm.weight", spec.dim));
  if (load.has("output.weight"))
    TERCET_TRY(load.matrix(weights.output, "output.weight", spec.vocab_size, spec.dim));
  for (int i = 0; i < spec.num_layers(); ++i) {
    if (progress) progress(i, spec.num_layers());
    TERCET_TRY(load_layer(load, spec, i, weights.layers.emplace_back()));
  }
  if (progress) progress(spec.num_layers(), spec.num_layers());
  return weights;
}

}  // namespace tercet::model
