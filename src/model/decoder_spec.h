// DecoderSpec: a decoder-only transformer as data. A family (families/) reads one from a model's metadata;
// decoder.cc runs it. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/device.h"
#include "kv/step_batch.h"
#include "model/rope.h"

namespace tercet::model {

// Far above any model's, low enough that sizes computed from it cannot overflow.
inline constexpr int kMaxLayers = 1024;
inline constexpr int kMaxRopes = 2;

enum class QkNorm : uint8_t {
  kNone,
  kPerHead,   // RMS norm of each head of q and k, before the rotation
  kWholeRow,  // of all heads at once
};

// Multi-head latent attention (DeepSeek-V2, 2024), in its absorbed form: what the cache keeps of a token is a
// latent and one rotated key, and all heads read it as a single KV head. K is [latent, rotated key], V the
// latent. A head's query is absorbed by its W_UK^T, its output expanded by its W_UV.
struct MlaSpec {
  int q_lora = 0;  // width of the latent that q is computed from; 0: q comes from x
  int kv_lora = 0;
  int nope_dim = 0;  // of a head: the part that is not rotated, the rotated part, the value
  int rope_dim = 0;
  int v_dim = 0;
  float norm_eps = 1e-6f;  // of the latents' norms
};

struct MoeSpec {
  backend::RouterSpec router;
  int ffn_dim = 0;         // of an expert
  int shared_ffn_dim = 0;  // of the expert that every token takes; 0: there is none
};

struct LayerSpec {
  int rope = 0;      // index into DecoderSpec::ropes; -1: positions do not show
  int window = 0;    // 0: full attention
  int kv_group = 0;  // index into DecoderSpec::kv_groups
  bool moe = false;  // a mixture of experts in place of one MLP
};

// A layer is x += residual_scale * post_norm(attention(pre_norm(x))), then the same with its MLP.
struct DecoderSpec {
  std::string architecture;
  int vocab_size = 0;
  int dim = 0;
  int ffn_dim = 0;
  int num_heads = 0;
  int num_kv_heads = 0;    // 1 with latent attention
  int head_dim = 0;        // of q and k
  int v_dim = 0;           // of v
  int context_length = 0;  // that the model was trained for
  float norm_eps = 1e-5f;
  float embedding_scale = 1;
  float residual_scale = 1;
  float attention_scale = 1;
  float logit_scale = 1;
  float attention_soft_cap = 0;  // 0: none
  float logit_soft_cap = 0;      // 0: none
  backend::Activation activation = backend::Activation::kSilu;
  bool has_pre_norms = true;
  bool has_post_norms = false;
  QkNorm qk_norm = QkNorm::kNone;
  bool has_sinks = false;
  // Other biases are taken where the model has them.
  bool needs_qkv_bias = false;
  // Rotated rows of q and k lie in the file as pairs (0, 1), (2, 3), ... of each head; loading undoes it.
  bool file_interleaves_rotary_pairs = false;
  std::optional<MlaSpec> mla;
  std::optional<MoeSpec> moe;
  std::vector<RopeSpec> ropes;
  std::vector<LayerSpec> layers;
  std::vector<kv::KvGroupSpec> kv_groups;  // num_blocks is the engine's to fill

  int num_layers() const { return static_cast<int>(layers.size()); }
  int q_dim() const { return num_heads * head_dim; }
  int k_row_dim() const { return num_kv_heads * head_dim; }
  int v_row_dim() const { return num_kv_heads * v_dim; }
  // What the output projection of attention reads.
  int attention_dim() const { return num_heads * (mla ? mla->v_dim : v_dim); }
  backend::KvLayerSpec kv_layer(int layer) const {
    return {layers[static_cast<size_t>(layer)].kv_group, num_kv_heads, head_dim, v_dim};
  }
  // Which of the ropes' frequencies a sequence uses that may grow to `max_tokens`: 1 for the long ones.
  int rope_variant(int max_tokens) const;
};

// Puts every layer into a KV group by its window: one group for full attention, one for each window size.
void assign_kv_groups(DecoderSpec& spec);

// Checks what no file may get wrong: positive sizes within limits, heads that divide, even rotary dims,
// finite numbers. The error names `where` and the quantity.
Status check_spec(const DecoderSpec& spec, const std::string& where);

}  // namespace tercet::model
