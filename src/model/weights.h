// The weights of a decoder on a device, and how they get there: tensor by tensor, so that the file's pages
// can go as soon as they are packed.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "backend/device.h"
#include "model/decoder_spec.h"
#include "model/tensor_source.h"

namespace tercet::model {

using WeightPtr = std::unique_ptr<backend::Weight>;

struct LayerWeights {
  WeightPtr attn_norm, q, k, v, q_bias, k_bias, v_bias, q_norm, k_norm, attn_out, attn_post_norm;
  WeightPtr ffn_norm, gate, up, down, ffn_post_norm;
};

struct DecoderWeights {
  WeightPtr embedding;
  std::vector<LayerWeights> layers;
  WeightPtr output_norm;
  WeightPtr output;  // nullptr: tied to the embedding

  const backend::Weight& output_or_tied() const { return output != nullptr ? *output : *embedding; }
  int64_t bytes() const;
};

// `progress(done, total)` counts layers. Errors name the file and the tensor, its shape and the one expected.
using LoadProgress = std::function<void(int done, int total)>;
Result<DecoderWeights> load_weights(const DecoderSpec& spec, const TensorSource& source,
                                    backend::Device& device, ThreadPool& threads,
                                    const LoadProgress& progress = {});

}  // namespace tercet::model
