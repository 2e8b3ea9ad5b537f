// DecoderSpec: a decoder-only transformer as data. A family (families/) reads one from a model file's
// metadata; decoder.cc runs it. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/device.h"
#include "kv/step_batch.h"

namespace tercet::model {

// Far above any model's, low enough that sizes computed from it cannot overflow.
inline constexpr int kMaxLayers = 1024;

// Rotary position embedding (Su et al. 2021), pairs (i, i + dims / 2): angle = position * factor_i *
// base^(-2i / dims).
struct RopeSpec {
  int dims = 0;  // of each head, from its start; even
  double base = 10000;
  double position_scale = 1;        // linear scaling: positions are multiplied by it
  std::vector<float> freq_factors;  // [dims / 2] divisors of the frequencies, or empty
};

struct LayerSpec {
  int rope = 0;      // index into DecoderSpec::ropes
  int window = 0;    // 0: full attention
  int kv_group = 0;  // index into DecoderSpec::kv_groups
};

struct DecoderSpec {
  std::string architecture;
  int vocab_size = 0;
  int dim = 0;
  int ffn_dim = 0;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int context_length = 0;  // that the model was trained for
  float norm_eps = 1e-5f;
  float embedding_scale = 1;
  float attention_scale = 1;
  float attention_soft_cap = 0;  // 0: none
  float logit_soft_cap = 0;      // 0: none
  backend::Activation activation = backend::Activation::kSilu;
  bool has_qkv_bias = false;
  bool has_qk_norm = false;     // RMS norm of each head of q and k, before the rotation
  bool has_post_norms = false;  // norms of what attention and MLP return, before the residual is added
  // Rows of q and k lie in the file as pairs (0, 1), (2, 3), ... of each head; loading undoes it.
  bool file_interleaves_rotary_pairs = false;
  std::vector<RopeSpec> ropes;
  std::vector<LayerSpec> layers;
  std::vector<kv::KvGroupSpec> kv_groups;  // num_blocks is the engine's to fill

  int num_layers() const { return static_cast<int>(layers.size()); }
  int q_dim() const { return num_heads * head_dim; }
  int kv_dim() const { return num_kv_heads * head_dim; }
};

// Puts every layer into a KV group by its window: one group for full attention, one for each window size.
void assign_kv_groups(DecoderSpec& spec);

// Checks what no file may get wrong: positive sizes within limits, heads that divide, even rotary dims,
// finite numbers. The error names `where` and the quantity.
Status check_spec(const DecoderSpec& spec, const std::string& where);

}  // namespace tercet::model
