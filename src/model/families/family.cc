#include "model/families/family.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tercet::model {
namespace {

using format::Metadata;

constexpr Family kFamilies[] = {
    {"llama", llama_spec},
    {"qwen2", qwen2_spec},
    {"gemma3", gemma3_spec},
};

// A key's value that fits an int; -1 (which check_spec refuses) where it does not.
Result<int> get_size(const Metadata& metadata, const std::string& key, std::optional<int> fallback = {}) {
  if (!metadata.has(key) && fallback.has_value()) return *fallback;
  TERCET_ASSIGN(const uint64_t value, metadata.get_uint(key));
  return value > INT32_MAX ? -1 : static_cast<int>(value);
}

// head_count_kv may be one number or one for each layer.
Result<int> get_kv_heads(const Metadata& metadata, const std::string& key, int fallback) {
  if (!metadata.has(key)) return fallback;
  TERCET_ASSIGN(const std::vector<int64_t> values, metadata.get_ints(key));
  if (values.empty() ||
      std::any_of(values.begin(), values.end(), [&](int64_t v) { return v != values.front(); }))
    return Error{ErrorCode::kUnsupported, "has different values for different layers, which is not supported",
                 key};
  return values.front() > INT32_MAX ? -1 : static_cast<int>(values.front());
}

Result<RopeSpec> common_rope(const Metadata& metadata, const std::string& prefix, int head_dim) {
  RopeSpec rope;
  TERCET_ASSIGN(rope.dims, get_size(metadata, prefix + "rope.dimension_count", head_dim));
  TERCET_ASSIGN(rope.base, metadata.get_float_or(prefix + "rope.freq_base", 10000.0));
  TERCET_ASSIGN(const std::string_view type, metadata.get_string_or(prefix + "rope.scaling.type", "none"));
  TERCET_ASSIGN(const double factor, metadata.get_float_or(prefix + "rope.scaling.factor", 1.0));
  if (type == "none") return rope;
  if (type != "linear")
    return Error{ErrorCode::kUnsupported, fmt::format("is \"{}\", known are none and linear", type),
                 prefix + "rope.scaling.type"};
  if (!(factor > 0))
    return Error{ErrorCode::kInvalidArgument, "must be positive", prefix + "rope.scaling.factor"};
  rope.position_scale = 1.0 / factor;
  return rope;
}

}  // namespace

std::span<const Family> families() { return kFamilies; }

Result<DecoderSpec> model_spec(const ModelSource& source) {
  TERCET_ASSIGN(const std::string_view architecture, source.metadata.get_string("general.architecture"));
  std::string known;
  for (const Family& family : kFamilies) {
    if (family.architecture == architecture) {
      TERCET_ASSIGN(DecoderSpec spec, family.spec(source));
      spec.architecture = architecture;
      TERCET_TRY(check_spec(spec, source.path()));
      return spec;
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", family.architecture);
  }
  return Error{ErrorCode::kUnsupported,
               fmt::format("general.architecture is \"{}\", which is not supported; known are {}",
                           architecture, known),
               source.path()};
}

Result<DecoderSpec> common_spec(const ModelSource& source) {
  const Metadata& metadata = source.metadata;
  TERCET_ASSIGN(const std::string_view architecture, metadata.get_string("general.architecture"));
  const std::string prefix = std::string(architecture) + ".";
  DecoderSpec spec;
  TERCET_ASSIGN(const int num_layers, get_size(metadata, prefix + "block_count"));
  TERCET_ASSIGN(spec.dim, get_size(metadata, prefix + "embedding_length"));
  TERCET_ASSIGN(spec.ffn_dim, get_size(metadata, prefix + "feed_forward_length"));
  TERCET_ASSIGN(spec.num_heads, get_size(metadata, prefix + "attention.head_count"));
  TERCET_ASSIGN(spec.num_kv_heads,
                get_kv_heads(metadata, prefix + "attention.head_count_kv", spec.num_heads));
  TERCET_ASSIGN(spec.context_length, get_size(metadata, prefix + "context_length"));
  TERCET_ASSIGN(const double eps, metadata.get_float(prefix + "attention.layer_norm_rms_epsilon"));
  spec.norm_eps = static_cast<float>(eps);
  // What the rest is computed from must make sense first.
  const bool divides = spec.num_heads > 0 && spec.dim > 0 && spec.dim % spec.num_heads == 0;
  if (num_layers < 1 || num_layers > kMaxLayers ||
      (!divides && !metadata.has(prefix + "attention.key_length")))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} layers of {} attention heads over a width of {} cannot be right", num_layers,
                             spec.num_heads, spec.dim),
                 source.path()};
  TERCET_ASSIGN(spec.head_dim,
                get_size(metadata, prefix + "attention.key_length", divides ? spec.dim / spec.num_heads : 0));
  TERCET_ASSIGN(const int value_dim, get_size(metadata, prefix + "attention.value_length", spec.head_dim));
  if (value_dim != spec.head_dim)
    return Error{ErrorCode::kUnsupported,
                 fmt::format("keys of {} and values of {} per head: only equal sizes are supported",
                             spec.head_dim, value_dim),
                 source.path()};
  TERCET_ASSIGN(const RopeSpec rope, common_rope(metadata, prefix, spec.head_dim));
  spec.ropes = {rope};
  spec.layers.resize(static_cast<size_t>(num_layers));
  spec.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(spec.head_dim)));
  const TensorInfo* embedding = source.tensors.find("token_embd.weight");
  if (embedding == nullptr)
    return Error{ErrorCode::kCorrupt, "the tensor token_embd.weight is missing", source.path()};
  spec.vocab_size = embedding->outputs() > INT32_MAX ? -1 : static_cast<int>(embedding->outputs());
  assign_kv_groups(spec);
  return spec;
}

}  // namespace tercet::model
