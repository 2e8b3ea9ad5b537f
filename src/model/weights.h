// The weights of a decoder on a device, and how they get there: matrix by matrix, so that the file's pages
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

struct Linear {
  WeightPtr weight;
  WeightPtr bias;  // nullptr: none
};

// Of one MLP, or stacks of all experts'.
struct MlpWeights {
  Linear gate, up, down;
};

// What a layer does not have is nullptr.
struct LayerWeights {
  WeightPtr attn_norm, attn_post_norm, ffn_norm, ffn_post_norm;
  Linear q, k, v, attn_out;
  WeightPtr q_norm, k_norm, sinks;
  // Latent attention. q_nope and q_rope hold those parts of all heads; k_b and v_b, stacks of a matrix for
  // each head, are W_UK^T [kv_lora, nope_dim] and W_UV [v_dim, kv_lora].
  Linear q_a, q_nope, q_rope, kv_latent, k_rope;
  WeightPtr q_a_norm, kv_a_norm, k_b, v_b;
  MlpWeights mlp;  // of a dense layer
  Linear router;
  WeightPtr router_correction;
  MlpWeights experts, shared;
};

struct DecoderWeights {
  WeightPtr embedding;
  std::vector<LayerWeights> layers;
  WeightPtr output_norm;
  WeightPtr output;          // nullptr: tied to the embedding
  int64_t bytes = 0;         // of all of them
  int64_t expert_bytes = 0;  // of the experts, of which a token reads some
  int64_t elements = 0, expert_elements = 0;

  const backend::Weight& output_or_tied() const { return output != nullptr ? *output : *embedding; }
};

// `progress(done, total)` counts layers. Errors name the file and the tensor, its shape and the one expected.
using LoadProgress = std::function<void(int done, int total)>;
Result<DecoderWeights> load_weights(const DecoderSpec& spec, const TensorSource& source,
                                    backend::Device& device, ThreadPool& threads,
                                    const LoadProgress& progress = {});

}  // namespace tercet::model
