#include "model/families/hf.h"

#include <fmt/format.h>

#include <algorithm>

namespace tercet::model {
namespace {

using format::Metadata;

constexpr HfFamily kHfFamilies[] = {
    {"MixtralForCausalLM", "mixtral", "llama", mixtral_rules, mixtral_to_gguf, mixtral_to_config,
     is_mixtral_gguf},
    {"MistralForCausalLM", "mistral", "llama", llama_rules, mistral_to_gguf, mistral_to_config,
     is_mistral_gguf},
    {"LlamaForCausalLM", "llama", "llama", llama_rules, llama_to_gguf, llama_to_config},
    {"SmolLM3ForCausalLM", "smollm3", "smollm3", llama_rules, smollm3_to_gguf, smollm3_to_config},
    {"GraniteForCausalLM", "granite", "granite", llama_rules, granite_to_gguf, granite_to_config},
    {"Qwen2ForCausalLM", "qwen2", "qwen2", qwen_rules, qwen_to_gguf, qwen_to_config},
    {"Qwen3ForCausalLM", "qwen3", "qwen3", qwen_rules, qwen_to_gguf, qwen_to_config},
    {"Qwen3MoeForCausalLM", "qwen3_moe", "qwen3moe", qwen3_moe_rules, qwen3_moe_to_gguf, qwen3_moe_to_config},
    {"Phi3ForCausalLM", "phi3", "phi3", phi3_rules, phi3_to_gguf, phi3_to_config},
    {"Gemma2ForCausalLM", "gemma2", "gemma2", gemma_rules, gemma2_to_gguf, gemma2_to_config},
    {"Gemma3ForCausalLM", "gemma3_text", "gemma3", gemma_rules, gemma3_to_gguf, gemma3_to_config},
    {"GlmForCausalLM", "glm", "chatglm", glm_rules, glm_to_gguf, glm_to_config},
    {"Glm4ForCausalLM", "glm4", "glm4", glm_rules, glm_to_gguf, glm_to_config},
    {"Olmo2ForCausalLM", "olmo2", "olmo2", olmo2_rules, olmo2_to_gguf, olmo2_to_config},
    {"DeepseekV3ForCausalLM", "deepseek_v3", "deepseek2", deepseek_rules, deepseek_to_gguf,
     deepseek_to_config, is_deepseek_v3_gguf},
    {"DeepseekV2ForCausalLM", "deepseek_v2", "deepseek2", deepseek_rules, deepseek_to_gguf,
     deepseek_to_config},
    {"GptOssForCausalLM", "gpt_oss", "gpt-oss", gpt_oss_rules, gpt_oss_to_gguf, gpt_oss_to_config},
};

using Kind = HfKey::Kind;

constexpr HfKey kCommonKeys[] = {
    {"vocab_size", "vocab_size", Kind::kInt, true},
    {"max_position_embeddings", "context_length", Kind::kInt, true},
    {"hidden_size", "embedding_length", Kind::kInt, true},
    {"num_hidden_layers", "block_count", Kind::kInt, true},
    {"intermediate_size", "feed_forward_length", Kind::kInt, true},
    {"num_attention_heads", "attention.head_count", Kind::kInt, true},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", Kind::kFloat, true},
};

// What quantization_config says about itself.
std::string scheme(const HfConfig& quantization) {
  const auto method = quantization.get_string_or("quant_method", "");
  const auto format = quantization.get_string_or("format", "");
  std::string name = method.ok() && !method->empty() ? *method : "an unnamed scheme";
  return format.ok() && !format->empty() ? name + ", " + *format : name;
}

}  // namespace

std::span<const HfFamily> hf_families() { return kHfFamilies; }

Result<const HfFamily*> hf_family(const HfConfig& config) {
  std::vector<std::string> classes;
  if (config.has("architectures")) {
    TERCET_ASSIGN(classes, config.get_strings("architectures"));
  }
  TERCET_ASSIGN(const std::string type, config.get_string_or("model_type", ""));
  std::string known;
  for (const HfFamily& family : kHfFamilies) {
    if (!classes.empty() ? classes[0] == family.model_class : type == family.model_type) return &family;
    known += (known.empty() ? "" : ", ") + std::string(family.model_class);
  }
  return config.error(ErrorCode::kUnsupported, classes.empty() ? "model_type" : "architectures",
                      fmt::format("is {}, which is not supported; known are {}",
                                  format::quote(classes.empty() ? type : classes[0]), known));
}

Result<const HfFamily*> hf_family(const Metadata& metadata) {
  TERCET_ASSIGN(const std::string_view architecture, metadata.get_string("general.architecture"));
  for (const HfFamily& family : kHfFamilies)
    if (family.architecture == architecture && (family.is_gguf == nullptr || family.is_gguf(metadata)))
      return &family;
  return Error{ErrorCode::kUnsupported,
               fmt::format("general.architecture is {}, for which no Hugging Face family is known",
                           format::quote(architecture)),
               metadata.source()};
}

Result<HfTranslation> translate_config(const HfFamily& family, const HfConfig& config) {
  if (config.has("quantization_config")) {
    TERCET_ASSIGN(const HfConfig quantization, config.get_object("quantization_config"));
    return config.error(ErrorCode::kUnsupported, "quantization_config",
                        fmt::format("the weights are quantized ({}); F32, F16 and BF16 are read: take the "
                                    "unquantized checkpoint, or a GGUF file of this model",
                                    scheme(quantization)));
  }
  HfTranslation translation{std::string(family.architecture), Metadata(config.path()), {}};
  translation.metadata.set("general.architecture", family.architecture);
  TERCET_TRY(family.to_gguf(config, translation));
  return translation;
}

Status copy_to_gguf(const HfConfig& config, std::span<const HfKey> keys, HfTranslation& out) {
  for (const HfKey& key : keys) {
    if (!key.required && !config.has(key.hf)) continue;
    const std::string name = out.key(key.gguf);
    if (key.kind == Kind::kInt) {
      TERCET_ASSIGN(const int64_t value, config.get_int(key.hf));
      if (value < 0 || value > UINT32_MAX)
        return config.error(ErrorCode::kInvalidArgument, key.hf, fmt::format("{} cannot be right", value));
      out.metadata.set(name, static_cast<uint32_t>(value));
    } else if (key.kind == Kind::kFloat) {
      TERCET_ASSIGN(const double value, config.get_float(key.hf));
      out.metadata.set(name, static_cast<float>(value));
    } else {
      TERCET_ASSIGN(const bool value, config.get_bool(key.hf));
      out.metadata.set(name, value);
    }
  }
  return {};
}

Status copy_to_config(const Metadata& metadata, std::span<const HfKey> keys, Metadata& config) {
  for (const HfKey& key : keys) {
    TERCET_ASSIGN(const std::string name, architecture_key(metadata, key.gguf));
    if (!key.required && !metadata.has(name)) continue;
    if (key.kind == Kind::kInt) {
      TERCET_ASSIGN(const uint64_t value, metadata.get_uint(name));
      config.set(key.hf, value);
    } else if (key.kind == Kind::kFloat) {
      TERCET_ASSIGN(const double value, metadata.get_float(name));
      config.set(key.hf, static_cast<float>(value));
    } else {
      TERCET_ASSIGN(const bool value, metadata.get_bool(name));
      config.set(key.hf, value);
    }
  }
  return {};
}

int64_t config_head_dim(const HfConfig& config) {
  const auto head_dim = config.get_int_or("head_dim", 0);
  if (head_dim.ok() && *head_dim > 0) return *head_dim;
  const auto width = config.get_int_or("hidden_size", 0), heads = config.get_int_or("num_attention_heads", 0);
  return width.ok() && heads.ok() && *heads > 0 ? *width / *heads : 0;
}

Status common_to_gguf(const HfConfig& config, HfTranslation& out, std::string_view activation) {
  TERCET_TRY(copy_to_gguf(config, kCommonKeys, out));
  const char* act_key = config.has("hidden_activation") ? "hidden_activation" : "hidden_act";
  TERCET_ASSIGN(const std::string act, config.get_string_or(act_key, activation));
  if (act != activation)
    return config.error(ErrorCode::kUnsupported, act_key,
                        fmt::format("is {}; {} is supported in this family", format::quote(act), activation));
  TERCET_ASSIGN(const int64_t heads, config.get_int("num_attention_heads"));
  TERCET_ASSIGN(const int64_t kv_heads, config.get_int_or("num_key_value_heads", heads));
  if (kv_heads < 1 || kv_heads > heads)
    return config.error(ErrorCode::kInvalidArgument, "num_key_value_heads",
                        fmt::format("is {} with {} attention heads", kv_heads, heads));
  out.metadata.set(out.key("attention.head_count_kv"), static_cast<uint32_t>(kv_heads));
  TERCET_ASSIGN(const int64_t head_dim, config.get_int_or("head_dim", config_head_dim(config)));
  if (head_dim < 1 || head_dim > UINT32_MAX)
    return config.error(ErrorCode::kInvalidArgument, "head_dim", fmt::format("{} cannot be right", head_dim));
  out.metadata.set(out.key("attention.key_length"), static_cast<uint32_t>(head_dim));
  out.metadata.set(out.key("attention.value_length"), static_cast<uint32_t>(head_dim));
  return {};
}

Status common_to_config(const Metadata& metadata, Metadata& config, std::string_view activation) {
  constexpr HfKey kKvHeads[] = {{"num_key_value_heads", "attention.head_count_kv"},
                                {"head_dim", "attention.key_length"}};
  TERCET_ASSIGN(const std::string vocab, architecture_key(metadata, "vocab_size"));
  // Many GGUF files leave the vocabulary's size to the embedding's shape; the caller knows it then.
  const auto keys = std::span(kCommonKeys).subspan(metadata.has(vocab) ? 0 : 1);
  TERCET_TRY(copy_to_config(metadata, keys, config));
  TERCET_TRY(copy_to_config(metadata, kKvHeads, config));
  config.set("hidden_act", activation);
  return {};
}

Result<std::string> architecture_key(const Metadata& metadata, std::string_view name) {
  TERCET_ASSIGN(const std::string_view architecture, metadata.get_string("general.architecture"));
  return fmt::format("{}.{}", architecture, name);
}

std::vector<HfTensorRule> join_rules(std::initializer_list<std::span<const HfTensorRule>> parts) {
  std::vector<HfTensorRule> rules;
  for (const auto& part : parts) rules.insert(rules.end(), part.begin(), part.end());
  return rules;
}

}  // namespace tercet::model
