// Decoder: runs a DecoderSpec with its weights. It knows StepBatches and device memory by handle; requests,
// text and scheduling are other folders' business.
//
// A Decoder is immutable after loading and may serve several contexts at once; a context (a stream with its
// buffers) belongs to one thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "model/decoder_spec.h"
#include "model/weights.h"

namespace tercet::model {

// A stream and the buffers of its steps.
struct DecoderContext {
  DecoderContext(backend::Device& device, ThreadPool& threads);
  std::unique_ptr<backend::Stream> stream;
  std::unique_ptr<backend::Buffer> x, normed, q, k, v, attn, projected, gate, up, last_x, logits;
  std::vector<std::unique_ptr<backend::Buffer>> angles;  // one for each rotary spec
};

// Called while a step runs; every member may be empty.
struct ForwardObserver {
  // Layer `layer` has written its K and V of this step.
  std::function<void(int layer)> layer_done;
  // The residual stream after layer `layer`: [rows, dim].
  std::function<void(int layer, backend::Matrix x)> hidden;
  // What a linear layer is about to multiply, under its tensor's name without ".weight" ("blk.0.attn_q").
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
  void compute_angles(DecoderContext& context, const kv::StepBatch& batch) const;
  void attention(DecoderContext& context, backend::KvStore& kv, const kv::StepBatch& batch, int index,
                 backend::Matrix x, const ForwardObserver& observer) const;
  void mlp(DecoderContext& context, int index, backend::Matrix x, const ForwardObserver& observer) const;
  backend::Matrix logits(DecoderContext& context, const kv::StepBatch& batch, backend::Matrix x,
                         const ForwardObserver& observer) const;

  DecoderSpec spec_;
  DecoderWeights weights_;
};

}  // namespace tercet::model
