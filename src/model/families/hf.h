// Model families in a Hugging Face folder. A family's row says how config.json becomes GGUF metadata and
// back, and which tensor is which; everything else reads GGUF's terms (family.h).
//
// What llama.cpp's keys cannot say stands under keys of tercet's own, each absent where it says nothing:
//   tercet.rope_layers    bool[layers]  which layers rotate q and k (SmolLM3)
//   tercet.moe_layers     bool[layers]  which layers are mixtures of experts, where not all are (Qwen3-MoE)
//   tercet.yarn_truncate  bool          whether the ramp's ends are rounded to whole pairs
//
// config.json is read in its older form (rope_theta, rope_scaling) and its newer one (rope_parameters).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/metadata.h"
#include "model/families/family.h"
#include "model/hf_config.h"
#include "model/hf_tensors.h"

namespace tercet::model {

// What a folder's config.json becomes.
struct HfTranslation {
  std::string architecture;  // general.architecture
  format::Metadata metadata;
  std::vector<ComputedTensor> computed;

  // "ARCH.NAME".
  std::string key(std::string_view name) const { return architecture + "." + std::string(name); }
};

struct HfFamily {
  std::string_view model_class;   // config.json's "architectures"
  std::string_view model_type;    // and "model_type"
  std::string_view architecture;  // GGUF's
  std::span<const HfTensorRule> (*rules)();
  Status (*to_gguf)(const HfConfig& config, HfTranslation& out);
  // Sets config.json's fields, "rope_scaling.factor" for one inside an object, from a GGUF model of this
  // architecture. kUnsupported where the family has no word for what the metadata says.
  Status (*to_config)(const format::Metadata& metadata, format::Metadata& config);
  // Tells apart families of one architecture; nullptr: it is this one.
  bool (*is_gguf)(const format::Metadata& metadata) = nullptr;
};

std::span<const HfFamily> hf_families();

// The family of a config.json by its "architectures", else its "model_type". kUnsupported, with the known
// ones, where there is none.
Result<const HfFamily*> hf_family(const HfConfig& config);
// The family whose folder a GGUF model would come from.
Result<const HfFamily*> hf_family(const format::Metadata& metadata);

// config.json as metadata and computed tensors. A scheme of quantized weights is kUnsupported and named.
Result<HfTranslation> translate_config(const HfFamily& family, const HfConfig& config);

// For the families' files.

// One field of config.json and its key "ARCH.NAME".
struct HfKey {
  enum class Kind : uint8_t { kInt, kFloat, kBool };
  std::string_view hf;
  std::string_view gguf;
  Kind kind = Kind::kInt;
  bool required = false;
};
Status copy_to_gguf(const HfConfig& config, std::span<const HfKey> keys, HfTranslation& out);
Status copy_to_config(const format::Metadata& metadata, std::span<const HfKey> keys,
                      format::Metadata& config);

// What every decoder has: sizes, heads, norm epsilon, and the activation, which must be `activation`.
Status common_to_gguf(const HfConfig& config, HfTranslation& out, std::string_view activation = "silu");
Status common_to_config(const format::Metadata& metadata, format::Metadata& config,
                        std::string_view activation = "silu");

int64_t config_head_dim(const HfConfig& config);

// Rotary settings in either form; `layer_type` chooses where they differ ("full_attention"). `head_dim` is
// what partial_rotary_factor is a part of.
Status rope_to_gguf(const HfConfig& config, int64_t head_dim, HfTranslation& out,
                    double default_partial_factor = 1);
Status rope_to_config(const format::Metadata& metadata, format::Metadata& config);
// Factors that GGUF keeps as tensors, as the settings they came from. kUnsupported where none gives them.
Status rope_tensors_to_config(const ModelSource& source, format::Metadata& config);
// The base of the rotation on layers of `layer_type` alone.
Result<double> rope_theta(const HfConfig& config, std::string_view layer_type);

// Windows: on the layers that "layer_types" calls sliding; else from `first_layer` on, on all but every
// `pattern`-th layer (0: on all). `gguf_pattern` is what GGUF's readers take where its key is absent.
Status sliding_to_gguf(const HfConfig& config, int64_t pattern, int64_t gguf_pattern, HfTranslation& out,
                       int64_t first_layer = 0);
Status sliding_to_config(const format::Metadata& metadata, int64_t gguf_pattern, format::Metadata& config);

Result<std::string> architecture_key(const format::Metadata& metadata, std::string_view name);

// Rules that most families share.
inline constexpr HfTensorRule kHfEmbedding[] = {
    {"token_embd.weight", "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight"},
    {"output.weight", "lm_head.weight"},
};
inline constexpr HfTensorRule kHfPreNorms[] = {
    {"blk.{}.attn_norm.weight", "model.layers.{}.input_layernorm.weight"},
    {"blk.{}.ffn_norm.weight", "model.layers.{}.post_attention_layernorm.weight"},
};
inline constexpr HfTensorRule kHfAttention[] = {
    {"blk.{}.attn_q.*", "model.layers.{}.self_attn.q_proj.*"},
    {"blk.{}.attn_k.*", "model.layers.{}.self_attn.k_proj.*"},
    {"blk.{}.attn_v.*", "model.layers.{}.self_attn.v_proj.*"},
    {"blk.{}.attn_output.*", "model.layers.{}.self_attn.o_proj.*"},
};
// For architectures whose q and k lie in pairs.
inline constexpr HfTensorRule kHfAttentionInPairs[] = {
    {"blk.{}.attn_q.*", "model.layers.{}.self_attn.q_proj.*", HfLayout::kRotaryQ},
    {"blk.{}.attn_k.*", "model.layers.{}.self_attn.k_proj.*", HfLayout::kRotaryK},
    {"blk.{}.attn_v.*", "model.layers.{}.self_attn.v_proj.*"},
    {"blk.{}.attn_output.*", "model.layers.{}.self_attn.o_proj.*"},
};
inline constexpr HfTensorRule kHfQkNorms[] = {
    {"blk.{}.attn_q_norm.weight", "model.layers.{}.self_attn.q_norm.weight"},
    {"blk.{}.attn_k_norm.weight", "model.layers.{}.self_attn.k_norm.weight"},
};
inline constexpr HfTensorRule kHfMlp[] = {
    {"blk.{}.ffn_gate.*", "model.layers.{}.mlp.gate_proj.*"},
    {"blk.{}.ffn_up.*", "model.layers.{}.mlp.up_proj.*"},
    {"blk.{}.ffn_down.*", "model.layers.{}.mlp.down_proj.*"},
};
inline constexpr HfTensorRule kHfFusedMlp[] = {
    {"blk.{}.ffn_up.weight", "model.layers.{}.mlp.gate_up_proj.weight"},
    {"blk.{}.ffn_down.weight", "model.layers.{}.mlp.down_proj.weight"},
};
inline constexpr HfTensorRule kHfExperts[] = {
    {"blk.{}.ffn_gate_inp.weight", "model.layers.{}.mlp.gate.weight", HfLayout::kF32},
    {"blk.{}.ffn_gate_exps.weight", "model.layers.{}.mlp.experts.{e}.gate_proj.weight"},
    {"blk.{}.ffn_up_exps.weight", "model.layers.{}.mlp.experts.{e}.up_proj.weight"},
    {"blk.{}.ffn_down_exps.weight", "model.layers.{}.mlp.experts.{e}.down_proj.weight"},
};

std::vector<HfTensorRule> join_rules(std::initializer_list<std::span<const HfTensorRule>> parts);

// The families' functions, each in its file.
std::span<const HfTensorRule> llama_rules();
Status llama_to_gguf(const HfConfig& config, HfTranslation& out);
Status llama_to_config(const format::Metadata& metadata, format::Metadata& config);
Status mistral_to_gguf(const HfConfig& config, HfTranslation& out);
Status mistral_to_config(const format::Metadata& metadata, format::Metadata& config);
bool is_mistral_gguf(const format::Metadata& metadata);
std::span<const HfTensorRule> mixtral_rules();
Status mixtral_to_gguf(const HfConfig& config, HfTranslation& out);
Status mixtral_to_config(const format::Metadata& metadata, format::Metadata& config);
bool is_mixtral_gguf(const format::Metadata& metadata);
Status smollm3_to_gguf(const HfConfig& config, HfTranslation& out);
Status smollm3_to_config(const format::Metadata& metadata, format::Metadata& config);
Status granite_to_gguf(const HfConfig& config, HfTranslation& out);
Status granite_to_config(const format::Metadata& metadata, format::Metadata& config);
std::span<const HfTensorRule> qwen_rules();
Status qwen_to_gguf(const HfConfig& config, HfTranslation& out);
Status qwen_to_config(const format::Metadata& metadata, format::Metadata& config);
std::span<const HfTensorRule> qwen3_moe_rules();
Status qwen3_moe_to_gguf(const HfConfig& config, HfTranslation& out);
Status qwen3_moe_to_config(const format::Metadata& metadata, format::Metadata& config);
std::span<const HfTensorRule> phi3_rules();
Status phi3_to_gguf(const HfConfig& config, HfTranslation& out);
Status phi3_to_config(const format::Metadata& metadata, format::Metadata& config);
std::span<const HfTensorRule> gemma_rules();
Status gemma2_to_gguf(const HfConfig& config, HfTranslation& out);
Status gemma2_to_config(const format::Metadata& metadata, format::Metadata& config);
Status gemma3_to_gguf(const HfConfig& config, HfTranslation& out);
Status gemma3_to_config(const format::Metadata& metadata, format::Metadata& config);
std::span<const HfTensorRule> glm_rules();
Status glm_to_gguf(const HfConfig& config, HfTranslation& out);
Status glm_to_config(const format::Metadata& metadata, format::Metadata& config);
std::span<const HfTensorRule> olmo2_rules();
Status olmo2_to_gguf(const HfConfig& config, HfTranslation& out);
Status olmo2_to_config(const format::Metadata& metadata, format::Metadata& config);
std::span<const HfTensorRule> deepseek_rules();
Status deepseek_to_gguf(const HfConfig& config, HfTranslation& out);
Status deepseek_to_config(const format::Metadata& metadata, format::Metadata& config);
bool is_deepseek_v3_gguf(const format::Metadata& metadata);
std::span<const HfTensorRule> gpt_oss_rules();
Status gpt_oss_to_gguf(const HfConfig& config, HfTranslation& out);
Status gpt_oss_to_config(const format::Metadata& metadata, format::Metadata& config);

}  // namespace tercet::model
