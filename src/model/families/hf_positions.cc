// Rotary settings and sliding windows of config.json, in its two forms, and back.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/math.h"
#include "model/families/hf.h"

namespace tercet::model {
namespace {

using format::Metadata;

constexpr double kTwoPi = 6.283185307179586;
constexpr int64_t kMostDims = 1 << 16;

// The settings that apply to layers of one type. `scaling` holds factor and so on.
struct RopeSettings {
  double theta = 10000;
  std::string type = "default";
  double partial_factor = 1;
  std::optional<HfConfig> scaling;
};

Result<RopeSettings> rope_settings(const HfConfig& config, std::string_view layer_type,
                                   double default_partial_factor) {
  RopeSettings rope;
  TERCET_ASSIGN(rope.theta, config.get_float_or("rope_theta", 10000));
  TERCET_ASSIGN(rope.partial_factor, config.get_float_or("partial_rotary_factor", default_partial_factor));
  if (config.has("rope_parameters")) {
    TERCET_ASSIGN(rope.scaling, config.get_object("rope_parameters"));
    if (rope.scaling->has(layer_type)) {
      TERCET_ASSIGN(rope.scaling, rope.scaling->get_object(layer_type));
    }
    TERCET_ASSIGN(rope.theta, rope.scaling->get_float_or("rope_theta", rope.theta));
    TERCET_ASSIGN(rope.partial_factor,
                  rope.scaling->get_float_or("partial_rotary_factor", rope.partial_factor));
  } else if (config.has("rope_scaling")) {
    TERCET_ASSIGN(rope.scaling, config.get_object("rope_scaling"));
  }
  if (rope.scaling) {
    TERCET_ASSIGN(const std::string old_name, rope.scaling->get_string_or("type", "default"));
    TERCET_ASSIGN(rope.type, rope.scaling->get_string_or("rope_type", old_name));
  }
  if (rope.type == "su") rope.type = "longrope";
  return rope;
}

Result<double> positive(const HfConfig& config, std::string_view key) {
  TERCET_ASSIGN(const double value, config.get_float(key));
  if (std::isfinite(value) && value > 0) return value;
  return config.error(ErrorCode::kInvalidArgument, key, fmt::format("is {}; it must be positive", value));
}

// The length that the model was trained for before the scaling.
Result<int64_t> original_context(const HfConfig& config, const HfConfig& scaling) {
  TERCET_ASSIGN(const int64_t whole, config.get_int("max_position_embeddings"));
  TERCET_ASSIGN(const int64_t outer, config.get_int_or("original_max_position_embeddings", whole));
  TERCET_ASSIGN(const int64_t original, scaling.get_int_or("original_max_position_embeddings", outer));
  if (original >= 1 && original <= INT32_MAX) return original;
  return scaling.error(ErrorCode::kInvalidArgument, "original_max_position_embeddings",
                       fmt::format("{} cannot be right", original));
}

struct Llama3Scaling {
  double factor = 8, low = 1, high = 4;
  int64_t original = 8192;
};

// Llama 3's scaling as divisors of the frequencies: long waves are slowed down by the factor, short ones
// stay, those between are mixed.
std::vector<float> llama3_factors(const Llama3Scaling& scaling, double theta, int64_t dims) {
  std::vector<float> factors;
  for (int64_t i = 0; i < dims / 2; ++i) {
    const double wave = kTwoPi * math::pow(theta, 2.0 * static_cast<double>(i) / static_cast<double>(dims));
    const double turns = static_cast<double>(scaling.original) / wave;
    const double smooth = (turns - scaling.low) / (scaling.high - scaling.low);
    const double divisor = turns > scaling.high  ? 1
                           : turns < scaling.low ? scaling.factor
                                                 : 1 / ((1 - smooth) / scaling.factor + smooth);
    factors.push_back(static_cast<float>(divisor));
  }
  return factors;
}

Result<Llama3Scaling> llama3_scaling(const HfConfig& config, const HfConfig& settings) {
  Llama3Scaling scaling;
  TERCET_ASSIGN(scaling.factor, positive(settings, "factor"));
  TERCET_ASSIGN(scaling.low, positive(settings, "low_freq_factor"));
  TERCET_ASSIGN(scaling.high, positive(settings, "high_freq_factor"));
  TERCET_ASSIGN(scaling.original, original_context(config, settings));
  return scaling;
}

// The settings that give these factors, among those that published models have; nullopt where none do.
std::optional<Llama3Scaling> find_llama3_scaling(std::span<const float> factors, double theta) {
  Llama3Scaling scaling;
  scaling.factor = static_cast<double>(*std::max_element(factors.begin(), factors.end()));
  for (scaling.original = 32; scaling.original <= 1 << 20; scaling.original *= 2) {
    const auto found = llama3_factors(scaling, theta, 2 * static_cast<int64_t>(factors.size()));
    const auto close = [](float a, float b) { return std::abs(a - b) <= 1e-4f * std::abs(b); };
    if (std::equal(found.begin(), found.end(), factors.begin(), close)) return scaling;
  }
  return std::nullopt;
}

Status yarn_to_gguf(const HfConfig& config, const HfConfig& scaling, HfTranslation& out) {
  TERCET_ASSIGN(const double factor, positive(scaling, "factor"));
  TERCET_ASSIGN(const int64_t original, original_context(config, scaling));
  TERCET_ASSIGN(const double fast, scaling.get_float_or("beta_fast", 32));
  TERCET_ASSIGN(const double slow, scaling.get_float_or("beta_slow", 1));
  TERCET_ASSIGN(const bool truncate, scaling.get_bool_or("truncate", true));
  Metadata& metadata = out.metadata;
  metadata.set(out.key("rope.scaling.type"), "yarn");
  metadata.set(out.key("rope.scaling.factor"), static_cast<float>(factor));
  metadata.set(out.key("rope.scaling.original_context_length"), static_cast<uint32_t>(original));
  metadata.set(out.key("rope.scaling.yarn_beta_fast"), static_cast<float>(fast));
  metadata.set(out.key("rope.scaling.yarn_beta_slow"), static_cast<float>(slow));
  metadata.set("tercet.yarn_truncate", truncate);
  const auto m = [&](double weight) { return 0.1 * weight * math::log(factor) + 1; };
  double magnitude = m(1);
  if (scaling.has("mscale") && scaling.has("mscale_all_dim")) {
    TERCET_ASSIGN(const double mscale, scaling.get_float("mscale"));
    TERCET_ASSIGN(const double all, scaling.get_float("mscale_all_dim"));
    magnitude = m(mscale) / m(all);
  }
  TERCET_ASSIGN(magnitude, scaling.get_float_or("attention_factor", magnitude));
  // What GGUF's readers multiply cosines and sines by of themselves: nothing where it goes to the scores.
  const double implied = metadata.has(out.key("rope.scaling.yarn_log_multiplier")) ? 1 : m(1);
  if (magnitude != implied)
    metadata.set(out.key("rope.scaling.attn_factor"), static_cast<float>(magnitude / implied));
  return {};
}

Status longrope_to_gguf(const HfConfig& config, const HfConfig& scaling, int64_t dims, HfTranslation& out) {
  TERCET_ASSIGN(const int64_t original, original_context(config, scaling));
  TERCET_ASSIGN(const int64_t whole, config.get_int("max_position_embeddings"));
  const double ratio = static_cast<double>(whole) / static_cast<double>(original);
  TERCET_ASSIGN(const double factor, scaling.get_float_or("factor", ratio));
  const double usual =
      factor > 1 ? std::sqrt(1 + math::log(factor) / math::log(static_cast<double>(original))) : 1;
  TERCET_ASSIGN(const double magnitude, scaling.get_float_or("attention_factor", usual));
  out.metadata.set(out.key("rope.scaling.type"), "longrope");
  out.metadata.set(out.key("rope.scaling.original_context_length"), static_cast<uint32_t>(original));
  out.metadata.set(out.key("rope.scaling.attn_factor"), static_cast<float>(magnitude));
  for (const char* kind : {"long", "short"}) {
    const std::string key = fmt::format("{}_factor", kind);
    TERCET_ASSIGN(const std::vector<double> factors, scaling.get_floats(key));
    if (static_cast<int64_t>(factors.size()) != dims / 2)
      return scaling.error(ErrorCode::kInvalidArgument, key,
                           fmt::format("has {} values for {} rotated dimensions", factors.size(), dims));
    out.computed.push_back(
        {fmt::format("rope_factors_{}.weight", kind), std::vector<float>(factors.begin(), factors.end())});
  }
  return {};
}

}  // namespace

Status rope_to_gguf(const HfConfig& config, int64_t head_dim, HfTranslation& out,
                    double default_partial_factor) {
  TERCET_ASSIGN(const RopeSettings rope, rope_settings(config, "full_attention", default_partial_factor));
  const auto dims = static_cast<int64_t>(static_cast<double>(head_dim) * rope.partial_factor);
  if (head_dim < 1 || head_dim > kMostDims || !(rope.partial_factor > 0 && rope.partial_factor <= 1))
    return config.error(ErrorCode::kInvalidArgument, "partial_rotary_factor",
                        fmt::format("{} of {} dimensions cannot be rotated", rope.partial_factor, head_dim));
  if (!(rope.theta > 0) || !std::isfinite(rope.theta))
    return config.error(ErrorCode::kInvalidArgument, "rope_theta",
                        fmt::format("is {}; it must be positive", rope.theta));
  out.metadata.set(out.key("rope.dimension_count"), static_cast<uint32_t>(dims));
  out.metadata.set(out.key("rope.freq_base"), static_cast<float>(rope.theta));
  if (rope.type == "default") return {};
  if (rope.type == "yarn") return yarn_to_gguf(config, *rope.scaling, out);
  if (rope.type == "longrope") return longrope_to_gguf(config, *rope.scaling, dims, out);
  if (rope.type == "llama3") {
    TERCET_ASSIGN(const Llama3Scaling scaling, llama3_scaling(config, *rope.scaling));
    out.computed.push_back({"rope_freqs.weight", llama3_factors(scaling, rope.theta, dims)});
    return {};
  }
  if (rope.type == "linear") {
    TERCET_ASSIGN(const double factor, positive(*rope.scaling, "factor"));
    out.metadata.set(out.key("rope.scaling.type"), "linear");
    out.metadata.set(out.key("rope.scaling.factor"), static_cast<float>(factor));
    return {};
  }
  return rope.scaling->error(
      ErrorCode::kUnsupported, "rope_type",
      fmt::format("is {}; known are default, linear, llama3, yarn and longrope", format::quote(rope.type)));
}

Result<double> rope_theta(const HfConfig& config, std::string_view layer_type) {
  TERCET_ASSIGN(const RopeSettings rope, rope_settings(config, layer_type, 1));
  return rope.theta;
}

Status rope_to_config(const Metadata& metadata, Metadata& config) {
  const auto key = [&](std::string_view name) { return *architecture_key(metadata, name); };
  TERCET_ASSIGN(const double theta, metadata.get_float_or(key("rope.freq_base"), 10000));
  config.set("rope_theta", static_cast<float>(theta));
  TERCET_ASSIGN(const std::string_view type, metadata.get_string_or(key("rope.scaling.type"), "none"));
  if (type == "none") return {};
  if (type == "longrope") {
    constexpr HfKey kLongRope[] = {
        {"original_max_position_embeddings", "rope.scaling.original_context_length"},
        {"rope_scaling.attention_factor", "rope.scaling.attn_factor", HfKey::Kind::kFloat},
    };
    config.set("rope_scaling.type", type);
    return copy_to_config(metadata, kLongRope, config);
  }
  if (type != "linear" && type != "yarn")
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("rotary scaling {} cannot be written as a Hugging Face config yet", format::quote(type)),
        metadata.source()};
  TERCET_ASSIGN(const double factor, metadata.get_float(key("rope.scaling.factor")));
  config.set("rope_scaling.rope_type", type);
  config.set("rope_scaling.factor", static_cast<float>(factor));
  if (type == "linear") return {};
  constexpr HfKey kYarn[] = {
      {"rope_scaling.original_max_position_embeddings", "rope.scaling.original_context_length"},
      {"rope_scaling.beta_fast", "rope.scaling.yarn_beta_fast", HfKey::Kind::kFloat},
      {"rope_scaling.beta_slow", "rope.scaling.yarn_beta_slow", HfKey::Kind::kFloat},
  };
  TERCET_TRY(copy_to_config(metadata, kYarn, config));
  if (metadata.has("tercet.yarn_truncate")) {
    TERCET_ASSIGN(const bool truncate, metadata.get_bool("tercet.yarn_truncate"));
    config.set("rope_scaling.truncate", truncate);
  }
  const double m = 0.1 * math::log(factor) + 1;
  TERCET_ASSIGN(const double more, metadata.get_float_or(key("rope.scaling.attn_factor"), 1));
  TERCET_ASSIGN(const double multiplier, metadata.get_float_or(key("rope.scaling.yarn_log_multiplier"), 0));
  if (multiplier != 0) {
    // mscale_all_dim / 10, and mscale such that the two magnitudes' ratio is the other key.
    const double all = 1 + multiplier * math::log(factor);
    const double mscale = factor == 1 ? multiplier * 10 : (more * all - 1) / (0.1 * math::log(factor));
    config.set("rope_scaling.mscale", static_cast<float>(mscale));
    config.set("rope_scaling.mscale_all_dim", static_cast<float>(multiplier * 10));
  } else if (more != 1) {
    config.set("rope_scaling.attention_factor", static_cast<float>(more * m));
  }
  return {};
}

namespace {

Result<std::vector<float>> read_vector(const TensorSource& tensors, const TensorInfo& tensor) {
  if (tensor.type != DType::kF32 || tensor.shape.size() != 1)
    return Error{ErrorCode::kCorrupt, fmt::format("the tensor {} is no vector of F32", tensor.name),
                 tensors.path()};
  TERCET_ASSIGN(const TensorData data, tensors.read(tensor));
  std::vector<float> values(static_cast<size_t>(tensor.inputs()));
  std::memcpy(values.data(), data.bytes.data(), data.bytes.size());
  return values;
}

}  // namespace

Status rope_tensors_to_config(const ModelSource& source, Metadata& config) {
  for (const char* kind : {"long", "short"}) {
    const TensorInfo* tensor = source.tensors.find(fmt::format("rope_factors_{}.weight", kind));
    if (tensor == nullptr) continue;
    TERCET_ASSIGN(const std::vector<float> factors, read_vector(source.tensors, *tensor));
    config.set(fmt::format("rope_scaling.{}_factor", kind), std::span<const float>(factors));
    if (!config.has("rope_scaling.type")) config.set("rope_scaling.type", "longrope");
  }
  const TensorInfo* tensor = source.tensors.find("rope_freqs.weight");
  if (tensor == nullptr) return {};
  TERCET_ASSIGN(const std::vector<float> factors, read_vector(source.tensors, *tensor));
  TERCET_ASSIGN(const double theta, config.get_float("rope_theta"));
  const auto scaling = find_llama3_scaling(factors, theta);
  if (!scaling)
    return Error{ErrorCode::kUnsupported, "rope_freqs.weight comes from no setting of Llama 3's scaling",
                 source.path()};
  config.set("rope_scaling.rope_type", "llama3");
  config.set("rope_scaling.factor", static_cast<float>(scaling->factor));
  config.set("rope_scaling.low_freq_factor", static_cast<float>(scaling->low));
  config.set("rope_scaling.high_freq_factor", static_cast<float>(scaling->high));
  config.set("rope_scaling.original_max_position_embeddings", scaling->original);
  return {};
}

namespace {

// The n for which exactly the layers i with (i + 1) % n == 0 do not slide; 0 where all slide; -1 where there
// is none.
int64_t pattern_of(const std::vector<bool>& sliding) {
  const auto full = std::find(sliding.begin(), sliding.end(), false);
  const int64_t every = full == sliding.end() ? 0 : full - sliding.begin() + 1;
  for (size_t i = 0; i < sliding.size(); ++i)
    if (sliding[i] != (every == 0 || (static_cast<int64_t>(i) + 1) % every != 0)) return -1;
  return every;
}

bool slides(int64_t pattern, int64_t layer) { return pattern == 0 || (layer + 1) % pattern != 0; }

}  // namespace

Status sliding_to_gguf(const HfConfig& config, int64_t pattern, int64_t gguf_pattern, HfTranslation& out,
                       int64_t first_layer) {
  if (!config.has("sliding_window")) return {};
  TERCET_ASSIGN(const int64_t window, config.get_int("sliding_window"));
  TERCET_ASSIGN(const int64_t layers, config.get_int("num_hidden_layers"));
  if (window < 1 || window > INT32_MAX || layers < 1 || layers > kMaxLayers)
    return config.error(ErrorCode::kInvalidArgument, "sliding_window",
                        fmt::format("{} on {} layers cannot be right", window, layers));
  std::vector<bool> sliding(static_cast<size_t>(layers));
  if (config.has("layer_types")) {
    TERCET_ASSIGN(const std::vector<std::string> types, config.get_strings("layer_types"));
    if (static_cast<int64_t>(types.size()) != layers)
      return config.error(ErrorCode::kInvalidArgument, "layer_types",
                          fmt::format("has {} entries for {} layers", types.size(), layers));
    for (size_t i = 0; i < types.size(); ++i) {
      sliding[i] = types[i] == "sliding_attention";
      if (!sliding[i] && types[i] != "full_attention")
        return config.error(ErrorCode::kUnsupported, "layer_types",
                            fmt::format("layer {} is {}; known are sliding_attention and full_attention", i,
                                        format::quote(types[i])));
    }
  } else {
    for (int64_t i = 0; i < layers; ++i)
      sliding[static_cast<size_t>(i)] = i >= first_layer && slides(pattern, i);
  }
  if (std::find(sliding.begin(), sliding.end(), true) == sliding.end()) return {};
  out.metadata.set(out.key("attention.sliding_window"), static_cast<uint32_t>(window));
  // The form that llama.cpp reads where there is one, and nothing where the architecture implies it.
  const int64_t found = pattern_of(sliding);
  const std::string key = out.key("attention.sliding_window_pattern");
  if (found < 0) out.metadata.set_bools(key, sliding);
  if (found >= 0 && found != gguf_pattern) out.metadata.set(key, static_cast<uint32_t>(found));
  return {};
}

namespace {

Result<std::vector<bool>> sliding_layers(const Metadata& metadata, int64_t gguf_pattern) {
  const auto key = [&](std::string_view name) { return *architecture_key(metadata, name); };
  TERCET_ASSIGN(const uint64_t window, metadata.get_uint_or(key("attention.sliding_window"), 0));
  TERCET_ASSIGN(const uint64_t layers, metadata.get_uint(key("block_count")));
  if (layers > static_cast<uint64_t>(kMaxLayers))
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} layers cannot be right", layers),
                 metadata.source()};
  std::vector<bool> sliding(layers);
  if (window == 0) return sliding;
  std::vector<int64_t> flags = {gguf_pattern};
  const std::string pattern_key = key("attention.sliding_window_pattern");
  if (metadata.has(pattern_key)) {
    TERCET_ASSIGN(flags, metadata.get_ints(pattern_key, /*allow_bools=*/true));
  }
  const bool is_pattern = !metadata.has(pattern_key) || !metadata.find(pattern_key)->is_array;
  if (!is_pattern && flags.size() != layers)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} has {} flags for {} layers", pattern_key, flags.size(), layers),
                 metadata.source()};
  for (size_t i = 0; i < layers; ++i)
    sliding[i] = is_pattern ? slides(flags[0], static_cast<int64_t>(i)) : flags[i] != 0;
  return sliding;
}

}  // namespace

Status sliding_to_config(const Metadata& metadata, int64_t gguf_pattern, Metadata& config) {
  TERCET_ASSIGN(const std::vector<bool> sliding, sliding_layers(metadata, gguf_pattern));
  if (std::find(sliding.begin(), sliding.end(), true) == sliding.end()) return {};
  TERCET_ASSIGN(const uint64_t window,
                metadata.get_uint(*architecture_key(metadata, "attention.sliding_window")));
  std::vector<std::string> types;
  for (const bool slides : sliding) types.emplace_back(slides ? "sliding_attention" : "full_attention");
  config.set("sliding_window", window);
  config.set("layer_types", types);
  return {};
}

}  // namespace tercet::model
