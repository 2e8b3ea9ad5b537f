#include "model/decoder.h"

#include <fmt/format.h>

#include "base/math.h"

namespace tercet::model {
namespace {

using backend::Buffer;
using backend::LinearTerm;
using backend::Matrix;

LinearTerm term(const Linear& linear, Matrix out) {
  return {.weight = linear.weight.get(), .bias = linear.bias.get(), .out = out};
}
LinearTerm gated(backend::Activation activation, const Linear& gate, const Linear& up, Matrix out) {
  LinearTerm both = term(gate, out);
  both.up = up.weight.get();
  both.up_bias = up.bias.get();
  both.activation = activation;
  return both;
}

// [rows, dims]: cosines, then sines, of each row's position.
std::vector<float> rope_angles(const RopeSpec& rope, const kv::StepBatch& batch) {
  const auto half = static_cast<size_t>(rope.dims / 2);
  std::vector<float> angles(batch.positions.size() * half * 2);
  for (const kv::SequenceRows& sequence : batch.sequences) {
    const bool is_long = sequence.rope_variant == 1 && !rope.long_frequencies.empty();
    const std::vector<double>& frequencies = is_long ? rope.long_frequencies : rope.frequencies;
    for (int row = sequence.first_row; row < sequence.first_row + sequence.num_rows; ++row) {
      float* cosines = angles.data() + static_cast<size_t>(row) * half * 2;
      for (size_t i = 0; i < half; ++i) {
        const double angle = static_cast<double>(batch.positions[static_cast<size_t>(row)]) * frequencies[i];
        cosines[i] = static_cast<float>(math::cos(angle) * rope.magnitude);
        cosines[half + i] = static_cast<float>(math::sin(angle) * rope.magnitude);
      }
    }
  }
  return angles;
}

}  // namespace

// One call of forward().
struct Decoder::Step {
  DecoderContext& context;
  backend::Stream& stream;
  backend::KvStore& kv;
  const kv::StepBatch& batch;
  const ForwardObserver& observer;
  Matrix x;  // the residual stream, [rows, dim]

  void observe(int layer, const std::string& name, Matrix input) const {
    if (observer.linear_input) observer.linear_input(fmt::format("blk.{}.{}", layer, name), input);
  }
};

DecoderContext::DecoderContext(backend::Device& device, ThreadPool& threads)
    : stream(device.stream(threads)), head_routes(device.routes()), expert_routes(device.routes()) {
  for (auto* buffer :
       {&x,      &normed,        &q,         &k,         &v,      &attn,   &projected, &hidden,
        &last_x, &logits,        &q_rope,    &q_latent,  &q_nope, &k_rope, &values,    &absorbed,
        &shared, &router_logits, &routed_in, &routed_out})
    *buffer = device.buffer();
  for (int i = 0; i < kMaxRopes; ++i) angles.push_back(device.buffer());
}

backend::KvStoreSpec Decoder::kv_store_spec(std::vector<int> group_blocks, backend::KvType type) const {
  backend::KvStoreSpec store;
  store.group_blocks = std::move(group_blocks);
  store.type = type;
  for (int layer = 0; layer < spec_.num_layers(); ++layer) store.layers.push_back(spec_.kv_layer(layer));
  return store;
}

void Decoder::begin(const Step& step) const {
  step.stream.prepare_kv(step.kv, step.batch);
  for (size_t i = 0; i < spec_.ropes.size(); ++i)
    step.stream.upload(rope_angles(spec_.ropes[i], step.batch),
                       step.context.angles[i]->view(step.x.rows, spec_.ropes[i].dims));
  if (spec_.mla)
    step.stream.route_heads(step.x.rows * spec_.num_heads, spec_.num_heads, *step.context.head_routes);
  step.stream.embed(*weights_.embedding, step.batch.tokens, spec_.embedding_scale, step.x);
}

// x, or its norm where there is one before the sublayer.
Matrix Decoder::normed(const Step& step, const WeightPtr& norm) const {
  if (!spec_.has_pre_norms) return step.x;
  const Matrix out = step.context.normed->view(step.x.rows, spec_.dim);
  step.stream.rms_norm(step.x, *norm, spec_.norm_eps, out);
  return out;
}

void Decoder::add_residual(const Step& step, const WeightPtr& post_norm, Matrix y) const {
  if (spec_.has_post_norms) step.stream.rms_norm(y, *post_norm, spec_.norm_eps, y);
  if (spec_.residual_scale != 1) step.stream.scale(y, spec_.residual_scale);
  step.stream.add(step.x, y);
}

void Decoder::rotate(const Step& step, int index, Matrix x, int head_dim) const {
  const int rope = spec_.layers[static_cast<size_t>(index)].rope;
  if (rope < 0) return;
  const auto at = static_cast<size_t>(rope);
  step.stream.rope(x, head_dim, step.context.angles[at]->view(x.rows, spec_.ropes[at].dims));
}

// Leaves q, k and v in the context's buffers.
void Decoder::project_qkv(const Step& step, int index, Matrix input) const {
  const LayerWeights& w = weights_.layers[static_cast<size_t>(index)];
  const int64_t rows = input.rows;
  const Matrix q = step.context.q->view(rows, spec_.q_dim());
  const Matrix k = step.context.k->view(rows, spec_.k_row_dim());
  const Matrix v = step.context.v->view(rows, spec_.v_row_dim());
  step.observe(index, "attn_q", input);
  const LinearTerm qkv[] = {term(w.q, q), term(w.k, k), term(w.v, v)};
  step.stream.linear(input, qkv);
  if (spec_.qk_norm != QkNorm::kNone) {
    const bool per_head = spec_.qk_norm == QkNorm::kPerHead;
    const Matrix q_rows = per_head ? q.reshaped(rows * spec_.num_heads, spec_.head_dim) : q;
    const Matrix k_rows = per_head ? k.reshaped(rows * spec_.num_kv_heads, spec_.head_dim) : k;
    step.stream.rms_norm(q_rows, *w.q_norm, spec_.norm_eps, q_rows);
    step.stream.rms_norm(k_rows, *w.k_norm, spec_.norm_eps, k_rows);
  }
  rotate(step, index, q, spec_.head_dim);
  rotate(step, index, k, spec_.head_dim);
}

// x: [rows * heads, inputs], each row multiplied with its head's matrix of `weight`: [rows * heads, outputs].
Matrix Decoder::multiply_by_head(const Step& step, const backend::Weight& weight, Matrix x,
                                 Buffer& out) const {
  DecoderContext& context = step.context;
  const Matrix in = context.routed_in->view(x.rows, x.cols);
  const Matrix product = context.routed_out->view(x.rows, weight.outputs());
  const Matrix result = out.view(x.rows, weight.outputs());
  step.stream.scatter_to_routes(x, *context.head_routes, in);
  const LinearTerm terms[] = {{.weight = &weight, .out = product}};
  step.stream.linear_by_route(in, *context.head_routes, terms);
  step.stream.gather_from_routes(product, *context.head_routes, result);
  return result;
}

// The same as project_qkv() with latent attention: v is the latent, k the latent and the rotated key, q the
// heads' absorbed and rotated parts.
void Decoder::project_latent(const Step& step, int index, Matrix input) const {
  const LayerWeights& w = weights_.layers[static_cast<size_t>(index)];
  const MlaSpec& mla = *spec_.mla;
  DecoderContext& context = step.context;
  const int64_t rows = input.rows, heads = rows * spec_.num_heads;
  const Matrix q_nope = context.q_nope->view(rows, int64_t{spec_.num_heads} * mla.nope_dim);
  const Matrix q_rope = context.q_rope->view(rows, int64_t{spec_.num_heads} * mla.rope_dim);
  const Matrix latent = context.v->view(rows, mla.kv_lora);
  const Matrix k_rope = context.k_rope->view(rows, mla.rope_dim);
  const LinearTerm q_parts[] = {term(w.q_nope, q_nope), term(w.q_rope, q_rope)};
  const LinearTerm kv_parts[] = {term(w.kv_latent, latent), term(w.k_rope, k_rope)};

  step.observe(index, "attn_kv_a_mqa", input);
  step.stream.linear(input, kv_parts);
  if (mla.q_lora == 0) {
    step.observe(index, "attn_q", input);
    step.stream.linear(input, q_parts);
  } else {
    const Matrix q_latent = context.q_latent->view(rows, mla.q_lora);
    const LinearTerm down[] = {term(w.q_a, q_latent)};
    step.observe(index, "attn_q_a", input);
    step.stream.linear(input, down);
    step.stream.rms_norm(q_latent, *w.q_a_norm, mla.norm_eps, q_latent);
    step.observe(index, "attn_q_b", q_latent);
    step.stream.linear(q_latent, q_parts);
  }
  step.stream.rms_norm(latent, *w.kv_a_norm, mla.norm_eps, latent);
  rotate(step, index, q_rope, mla.rope_dim);
  rotate(step, index, k_rope, mla.rope_dim);

  const Matrix absorbed =
      multiply_by_head(step, *w.k_b, q_nope.reshaped(heads, mla.nope_dim), *context.absorbed);
  step.stream.concat(absorbed, q_rope.reshaped(heads, mla.rope_dim),
                     context.q->view(rows, spec_.q_dim()).reshaped(heads, spec_.head_dim));
  step.stream.concat(latent, k_rope, context.k->view(rows, spec_.k_row_dim()));
}

void Decoder::attention(const Step& step, int index) const {
  const LayerSpec& layer = spec_.layers[static_cast<size_t>(index)];
  const LayerWeights& w = weights_.layers[static_cast<size_t>(index)];
  DecoderContext& context = step.context;
  const int64_t rows = step.x.rows;
  const Matrix input = normed(step, w.attn_norm);
  if (spec_.mla) {
    project_latent(step, index, input);
  } else {
    project_qkv(step, index, input);
  }
  step.stream.store_kv(step.kv, index, context.k->view(rows, spec_.k_row_dim()),
                       context.v->view(rows, spec_.v_row_dim()), step.batch);
  if (step.observer.layer_done) step.observer.layer_done(index);

  Matrix attn = context.attn->view(rows, int64_t{spec_.num_heads} * spec_.v_dim);
  step.stream.attention(
      step.kv, index, context.q->view(rows, spec_.q_dim()), step.batch,
      {spec_.num_heads, spec_.attention_scale, spec_.attention_soft_cap, layer.window, w.sinks.get()}, attn);
  if (spec_.mla)
    attn = multiply_by_head(step, *w.v_b, attn.reshaped(rows * spec_.num_heads, spec_.v_dim), *context.values)
               .reshaped(rows, spec_.attention_dim());
  const Matrix projected = context.projected->view(rows, spec_.dim);
  step.observe(index, "attn_output", attn);
  const LinearTerm out[] = {term(w.attn_out, projected)};
  step.stream.linear(attn, out);
  add_residual(step, w.attn_post_norm, projected);
}

// `suffix` ends the tensors' names: "", or "_shexp" for the expert that every token takes.
void Decoder::mlp(const Step& step, int index, const char* suffix, const MlpWeights& w, int ffn_dim,
                  Matrix input, Matrix out) const {
  const Matrix hidden = step.context.hidden->view(input.rows, ffn_dim);
  step.observe(index, fmt::format("ffn_gate{}", suffix), input);
  const LinearTerm gate_up[] = {gated(spec_.activation, w.gate, w.up, hidden)};
  step.stream.linear(input, gate_up);
  step.observe(index, fmt::format("ffn_down{}", suffix), hidden);
  const LinearTerm down[] = {term(w.down, out)};
  step.stream.linear(hidden, down);
}

void Decoder::mixture(const Step& step, int index, Matrix input, Matrix out) const {
  const LayerWeights& w = weights_.layers[static_cast<size_t>(index)];
  const MoeSpec& moe = *spec_.moe;
  DecoderContext& context = step.context;
  const int64_t copies = input.rows * moe.router.num_used;
  const Matrix router_logits = context.router_logits->view(input.rows, moe.router.num_experts);
  const Matrix in = context.routed_in->view(copies, spec_.dim);
  const Matrix hidden = context.hidden->view(copies, moe.ffn_dim);
  const Matrix product = context.routed_out->view(copies, spec_.dim);
  backend::Routes& routes = *context.expert_routes;

  const LinearTerm router[] = {term(w.router, router_logits)};
  step.stream.linear(input, router);
  step.stream.route(router_logits, moe.router, w.router_correction.get(), routes);
  step.stream.scatter_to_routes(input, routes, in);
  step.observe(index, "ffn_gate_exps", in);
  const LinearTerm gate_up[] = {gated(spec_.activation, w.experts.gate, w.experts.up, hidden)};
  step.stream.linear_by_route(in, routes, gate_up);
  step.observe(index, "ffn_down_exps", hidden);
  const LinearTerm down[] = {term(w.experts.down, product)};
  step.stream.linear_by_route(hidden, routes, down);
  step.stream.gather_from_routes(product, routes, out);
  if (moe.shared_ffn_dim == 0) return;
  const Matrix shared = context.shared->view(input.rows, spec_.dim);
  mlp(step, index, "_shexp", w.shared, moe.shared_ffn_dim, input, shared);
  step.stream.add(out, shared);
}

void Decoder::feed_forward(const Step& step, int index) const {
  const LayerWeights& w = weights_.layers[static_cast<size_t>(index)];
  const Matrix input = normed(step, w.ffn_norm);
  const Matrix projected = step.context.projected->view(step.x.rows, spec_.dim);
  if (spec_.layers[static_cast<size_t>(index)].moe) {
    mixture(step, index, input, projected);
  } else {
    mlp(step, index, "", w.mlp, spec_.ffn_dim, input, projected);
  }
  add_residual(step, w.ffn_post_norm, projected);
}

// [rows, dim]: these rows of the residual stream after the output norm, in context.last_x.
Matrix Decoder::output_rows(const Step& step, std::span<const int32_t> rows) const {
  const Matrix last_x = step.context.last_x->view(static_cast<int64_t>(rows.size()), spec_.dim);
  step.stream.gather(step.x, rows, last_x);
  step.stream.rms_norm(last_x, *weights_.output_norm, spec_.norm_eps, last_x);
  return last_x;
}

Matrix Decoder::logits(const Step& step) const {
  const Matrix last_x = output_rows(step, step.batch.wanted_rows);
  const Matrix logits = step.context.logits->view(last_x.rows, spec_.vocab_size);
  if (step.observer.linear_input) step.observer.linear_input("output", last_x);
  const LinearTerm out[] = {{.weight = &weights_.output_or_tied(), .out = logits}};
  step.stream.linear(last_x, out);
  if (spec_.logit_scale != 1) step.stream.scale(logits, spec_.logit_scale);
  if (spec_.logit_soft_cap != 0) step.stream.soft_cap(logits, spec_.logit_soft_cap);
  return logits;
}

Result<Matrix> Decoder::forward(DecoderContext& context, backend::KvStore& kv, const kv::StepBatch& batch,
                                int first_layer, int last_layer, const ForwardObserver& observer) const {
  const Step step{context, *context.stream, kv,
                  batch,   observer,        context.x->view(batch.num_rows(), spec_.dim)};
  if (first_layer == 0) begin(step);
  for (int layer = first_layer; layer < last_layer; ++layer) {
    attention(step, layer);
    feed_forward(step, layer);
    if (observer.hidden) observer.hidden(layer, step.x);
    if (step.stream.take_non_finite())
      return Error{ErrorCode::kInternal,
                   "a value is not finite: the model's weights are damaged (tercet inspect --check finds "
                   "such weights) or "
                   "its activations overflow",
                   fmt::format("layer {}", layer)};
  }
  if (last_layer < spec_.num_layers()) return step.x;
  if (observer.last_hidden && !batch.hidden_rows.empty())
    observer.last_hidden(output_rows(step, batch.hidden_rows));
  const Matrix result = logits(step);
  if (step.stream.take_non_finite())
    return Error{ErrorCode::kInternal, "a value is not finite", "output layer"};
  return result;
}

}  // namespace tercet::model
