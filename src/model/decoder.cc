#include "model/decoder.h"

#include <fmt/format.h>

#include "base/math.h"

namespace tercet::model {
namespace {

using backend::LinearTerm;
using backend::Matrix;

// [rows, dims]: cosines, then sines, of each row's position.
std::vector<float> rope_angles(const RopeSpec& rope, const std::vector<int32_t>& positions) {
  const auto half = static_cast<size_t>(rope.dims / 2);
  std::vector<double> frequency(half);
  for (size_t i = 0; i < half; ++i) {
    frequency[i] = rope.position_scale * math::pow(rope.base, -2.0 * static_cast<double>(i) / rope.dims);
    if (!rope.freq_factors.empty()) frequency[i] /= static_cast<double>(rope.freq_factors[i]);
  }
  std::vector<float> angles(positions.size() * half * 2);
  for (size_t row = 0; row < positions.size(); ++row) {
    for (size_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(positions[row]) * frequency[i];
      angles[row * half * 2 + i] = static_cast<float>(math::cos(angle));
      angles[row * half * 2 + half + i] = static_cast<float>(math::sin(angle));
    }
  }
  return angles;
}

void observe(const ForwardObserver& observer, int layer, const char* name, Matrix input) {
  if (observer.linear_input) observer.linear_input(fmt::format("blk.{}.{}", layer, name), input);
}

}  // namespace

DecoderContext::DecoderContext(backend::Device& device, ThreadPool& threads)
    : stream(device.stream(threads)) {
  for (auto* buffer : {&x, &normed, &q, &k, &v, &attn, &projected, &gate, &up, &last_x, &logits})
    *buffer = device.buffer();
  // A model has at most two rotary specs.
  for (int i = 0; i < 2; ++i) angles.push_back(device.buffer());
}

backend::KvStoreSpec Decoder::kv_store_spec(std::vector<int> group_blocks, backend::KvType type) const {
  backend::KvStoreSpec store;
  store.group_blocks = std::move(group_blocks);
  store.type = type;
  for (const LayerSpec& layer : spec_.layers)
    store.layers.push_back({layer.kv_group, spec_.num_kv_heads, spec_.head_dim});
  return store;
}

void Decoder::compute_angles(DecoderContext& context, const kv::StepBatch& batch) const {
  for (size_t i = 0; i < spec_.ropes.size(); ++i) {
    const RopeSpec& rope = spec_.ropes[i];
    context.stream->upload(rope_angles(rope, batch.positions),
                           context.angles[i]->view(batch.num_rows(), rope.dims));
  }
}

void Decoder::attention(DecoderContext& context, backend::KvStore& kv, const kv::StepBatch& batch, int index,
                        Matrix x, const ForwardObserver& observer) const {
  const LayerSpec& layer = spec_.layers[static_cast<size_t>(index)];
  const LayerWeights& w = weights_.layers[static_cast<size_t>(index)];
  backend::Stream& stream = *context.stream;
  const int64_t rows = x.rows;
  const Matrix normed = context.normed->view(rows, spec_.dim);
  const Matrix q = context.q->view(rows, spec_.q_dim());
  const Matrix k = context.k->view(rows, spec_.kv_dim());
  const Matrix v = context.v->view(rows, spec_.kv_dim());
  const Matrix attn = context.attn->view(rows, spec_.q_dim());
  const Matrix projected = context.projected->view(rows, spec_.dim);

  stream.rms_norm(x, *w.attn_norm, spec_.norm_eps, normed);
  observe(observer, index, "attn_q", normed);
  const LinearTerm qkv[] = {
      {w.q.get(), w.q_bias.get(), q}, {w.k.get(), w.k_bias.get(), k}, {w.v.get(), w.v_bias.get(), v}};
  stream.linear(normed, qkv);
  if (spec_.has_qk_norm) {
    const Matrix q_heads = q.reshaped(rows * spec_.num_heads, spec_.head_dim);
    const Matrix k_heads = k.reshaped(rows * spec_.num_kv_heads, spec_.head_dim);
    stream.rms_norm(q_heads, *w.q_norm, spec_.norm_eps, q_heads);
    stream.rms_norm(k_heads, *w.k_norm, spec_.norm_eps, k_heads);
  }
  const auto rope = static_cast<size_t>(layer.rope);
  const Matrix angles = context.angles[rope]->view(rows, spec_.ropes[rope].dims);
  stream.rope(q, spec_.head_dim, angles);
  stream.rope(k, spec_.head_dim, angles);
  stream.store_kv(kv, index, k, v, batch);
  if (observer.layer_done) observer.layer_done(index);
  stream.attention(kv, index, q, batch,
                   {spec_.num_heads, spec_.attention_scale, spec_.attention_soft_cap, layer.window}, attn);
  observe(observer, index, "attn_output", attn);
  const LinearTerm out[] = {{w.attn_out.get(), nullptr, projected}};
  stream.linear(attn, out);
  if (spec_.has_post_norms) stream.rms_norm(projected, *w.attn_post_norm, spec_.norm_eps, projected);
  stream.add(x, projected);
}

void Decoder::mlp(DecoderContext& context, int index, Matrix x, const ForwardObserver& observer) const {
  const LayerWeights& w = weights_.layers[static_cast<size_t>(index)];
  backend::Stream& stream = *context.stream;
  const Matrix normed = context.normed->view(x.rows, spec_.dim);
  const Matrix gate = context.gate->view(x.rows, spec_.ffn_dim);
  const Matrix up = context.up->view(x.rows, spec_.ffn_dim);
  const Matrix projected = context.projected->view(x.rows, spec_.dim);

  stream.rms_norm(x, *w.ffn_norm, spec_.norm_eps, normed);
  observe(observer, index, "ffn_gate", normed);
  const LinearTerm gate_up[] = {{w.gate.get(), nullptr, gate}, {w.up.get(), nullptr, up}};
  stream.linear(normed, gate_up);
  stream.gate(spec_.activation, gate, up);
  observe(observer, index, "ffn_down", gate);
  const LinearTerm down[] = {{w.down.get(), nullptr, projected}};
  stream.linear(gate, down);
  if (spec_.has_post_norms) stream.rms_norm(projected, *w.ffn_post_norm, spec_.norm_eps, projected);
  stream.add(x, projected);
}

Matrix Decoder::logits(DecoderContext& context, const kv::StepBatch& batch, Matrix x,
                       const ForwardObserver& observer) const {
  backend::Stream& stream = *context.stream;
  const auto wanted = static_cast<int64_t>(batch.wanted_rows.size());
  const Matrix last_x = context.last_x->view(wanted, spec_.dim);
  const Matrix logits = context.logits->view(wanted, spec_.vocab_size);
  stream.gather(x, batch.wanted_rows, last_x);
  stream.rms_norm(last_x, *weights_.output_norm, spec_.norm_eps, last_x);
  if (observer.linear_input) observer.linear_input("output", last_x);
  const LinearTerm out[] = {{&weights_.output_or_tied(), nullptr, logits}};
  stream.linear(last_x, out);
  if (spec_.logit_soft_cap != 0) stream.soft_cap(logits, spec_.logit_soft_cap);
  return logits;
}

Result<Matrix> Decoder::forward(DecoderContext& context, backend::KvStore& kv, const kv::StepBatch& batch,
                                int first_layer, int last_layer, const ForwardObserver& observer) const {
  backend::Stream& stream = *context.stream;
  const Matrix x = context.x->view(batch.num_rows(), spec_.dim);
  if (first_layer == 0) {
    stream.prepare_kv(kv, batch);
    compute_angles(context, batch);
    stream.embed(*weights_.embedding, batch.tokens, spec_.embedding_scale, x);
  }
  for (int layer = first_layer; layer < last_layer; ++layer) {
    attention(context, kv, batch, layer, x, observer);
    mlp(context, layer, x, observer);
    if (observer.hidden) observer.hidden(layer, x);
    if (stream.take_non_finite())
      return Error{ErrorCode::kInternal,
                   "a value is not finite: the model's weights are damaged (tercet inspect --check finds "
                   "such weights) or "
                   "its activations overflow",
                   fmt::format("layer {}", layer)};
  }
  if (last_layer < spec_.num_layers()) return x;
  const Matrix result = logits(context, batch, x, observer);
  if (stream.take_non_finite()) return Error{ErrorCode::kInternal, "a value is not finite", "output layer"};
  return result;
}

}  // namespace tercet::model
