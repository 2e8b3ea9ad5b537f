// Decoder: runs a DecoderSpec with its weights. It knows StepBatches and device memory by handle; requests,
// text and scheduling are other folders' business.
//
// A Decoder is immutable after loading and may serve several contexts at once; a context (a stream with its
// buffers) belongs to one thread.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "model/decoder_spec.h"
#include "model/weights.h"

namespace tercet::model {

// A stream and the buffers of its steps.
struct DecoderContext {
  DecoderContext(backend::Device& device, ThreadPool& threads);
  std::unique_ptr<backend::Stream> stream;
  std::unique_ptr<backend::Buffer> x, normed, q, k, v, attn, projected, hidden, last_x, logits;
  std::unique_ptr<backend::Buffer> q_latent, q_nope, q_rope, k_rope, absorbed, values;  // latent attention
  std::unique_ptr<backend::Buffer> router_logits, shared;                               // mixtures of experts
  std::unique_ptr<backend::Buffer> routed_in, routed_out;                               // both
  std::vector<std::unique_ptr<backend::Buffer>> angles;                                 // [kMaxRopes]
  std::unique_ptr<backend::Routes> head_routes, expert_routes;
};

// Called while a step runs; every member may be empty.
struct ForwardObserver {
  // Layer `layer` has written its K and V of this step.
  std::function<void(int layer)> layer_done;
  // The residual stream after layer `layer`: [rows, dim].
  std::function<void(int layer, backend::Matrix x)> hidden;
  // The last hidden states, after the output norm, of the batch's hidden_rows where it has any: [rows, dim].
  std::function<void(backend::Matrix x)> last_hidden;
  // What a linear layer is about to multiply, under its tensor's name without ".weight" ("blk.0.attn_q"). For
  // experts ("blk.0.ffn_gate_exps"): a row for each expert of each token, grouped by expert.
  std::function<void(const std::string& name, backend::Matrix input)> linear_input;
};

class Decoder {
 public:
  Decoder(DecoderSpec spec, DecoderWeights weights) : spec_(std::move(spec)), weights_(std::move(weights)) {}

  const DecoderSpec& spec() const { return spec_; }
  const DecoderWeights& weights() const { return weights_; }

  // Layers and KV heads as the KV store wants them, for pools of `group_blocks` blocks.
  backend::KvStoreSpec kv_store_spec(std::vector<int> group_blocks, backend::KvType type) const;

  // Runs layers [first_layer, last_layer) on a batch. Layer 0 begins from the tokens' embeddings, a later
  // first layer from context.x as the previous call left it. When last_layer is the last one, returns the
  // logits of the batch's wanted rows, [wanted_rows, vocab]; else the residual stream. A value that is not
  // finite is an error that names the layer.
  Result<backend::Matrix> forward(DecoderContext& context, backend::KvStore& kv, const kv::StepBatch& batch,
                                  int first_layer, int last_layer,
                                  const ForwardObserver& observer = {}) const;
  Result<backend::Matrix> forward(DecoderContext& context, backend::KvStore& kv, const kv::StepBatch& batch,
                                  const ForwardObserver& observer = {}) const {
    return forward(context, kv, batch, 0, spec_.num_layers(), observer);
  }

 private:
  struct Step;
  void begin(const Step& step) const;
  void attention(const Step& step, int index) const;
  void project_qkv(const Step& step, int index, backend::Matrix input) const;
  void project_latent(const Step& step, int index, backend::Matrix input) const;
  backend::Matrix multiply_by_head(const Step& step, const backend::Weight& weight, backend::Matrix x,
                                   backend::Buffer& out) const;
  void rotate(const Step& step, int index, backend::Matrix x, int head_dim) const;
  void feed_forward(const Step& step, int index) const;
  void mlp(const Step& step, int index, const char* suffix, const MlpWeights& w, int ffn_dim,
           backend::Matrix input, backend::Matrix out) const;
  void mixture(const Step& step, int index, backend::Matrix input, backend::Matrix out) const;
  backend::Matrix normed(const Step& step, const WeightPtr& norm) const;
  void add_residual(const Step& step, const WeightPtr& post_norm, backend::Matrix y) const;
  backend::Matrix output_rows(const Step& step, std::span<const int32_t> rows) const;
  backend::Matrix logits(const Step& step) const;

  DecoderSpec spec_;
  DecoderWeights weights_;
};

}  // namespace tercet::model
