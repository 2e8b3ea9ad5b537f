// The weights of a decoder on a device, and how they get there: tensor by tensor, so that the file's pages
// can go as soon as they are packed.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/device.h"
#include "model/decoder_spec.h"

namespace tercet::model {

// A tensor of a model file: `outputs` rows of `inputs` elements (a vector has one row).
struct TensorView {
  DType type = DType::kF32;
  int64_t outputs = 0;
  int64_t inputs = 0;
  std::span<const std::byte> data;
};

// Where tensors come from, under GGUF's names ("blk.0.attn_q.weight"). `release` says that a tensor was used
// for the last time.
struct TensorSource {
  std::string path;  // for errors
  std::function<std::optional<TensorView>(const std::string& name)> find;
  std::function<void(const std::string& name)> release;
};

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
