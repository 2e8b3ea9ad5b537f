// What families share.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/families/family.h"
#include "quant/codec.h"

namespace tercet::model {
namespace {

constexpr int kMaxRotaryDims = 1 << 16;

// head_count_kv may be one number or one for each layer.
Result<int> get_kv_heads(const ModelSource& source, const ArchKeys& keys, int fallback) {
  const std::string key = keys.full("attention.head_count_kv");
  if (!source.metadata.has(key)) return fallback;
  TERCET_ASSIGN(const std::vector<int64_t> values, source.metadata.get_ints(key));
  if (values.empty() ||
      std::any_of(values.begin(), values.end(), [&](int64_t v) { return v != values.front(); }))
    return Error{ErrorCode::kUnsupported, "has different values for different layers, which is not supported",
                 key};
  return values.front() > INT32_MAX ? -1 : static_cast<int>(values.front());
}

// A tensor of divisors of the frequencies.
Result<std::vector<float>> read_factors(const ModelSource& source, const TensorInfo& tensor, int dims) {
  if (tensor.type != DType::kF32 || tensor.shape != std::vector<int64_t>{dims / 2})
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} is {} of {} values, expected F32 of {}", tensor.name,
                             dtype_name(tensor.type), tensor.elements(), dims / 2),
                 source.path()};
  std::vector<float> factors(static_cast<size_t>(dims / 2));
  TERCET_ASSIGN(const TensorData data, source.tensors.read(tensor));
  quant::dequantize_row(DType::kF32, data.bytes.data(), factors.data(), dims / 2);
  return factors;
}

std::vector<double> divided(std::vector<double> frequencies, const std::vector<float>& factors) {
  for (size_t i = 0; i < frequencies.size(); ++i) frequencies[i] /= static_cast<double>(factors[i]);
  return frequencies;
}

Status scale_by_yarn(const ModelSource& source, const ArchKeys& keys, double factor, double base,
                     const CommonDefaults& defaults, RopeSpec& rope) {
  Yarn yarn;
  yarn.factor = factor;
  TERCET_ASSIGN(yarn.original_context, keys.size("rope.scaling.original_context_length"));
  TERCET_ASSIGN(yarn.beta_fast, keys.number("rope.scaling.yarn_beta_fast", 32.0f));
  TERCET_ASSIGN(yarn.beta_slow, keys.number("rope.scaling.yarn_beta_slow", 1.0f));
  TERCET_ASSIGN(yarn.truncate, source.metadata.get_bool_or("tercet.yarn_truncate", defaults.yarn_truncate));
  if (yarn.original_context < 1 || !(yarn.beta_fast > 0) || !(yarn.beta_slow > 0))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("YaRN with an original context of {} and betas of {} and {} cannot be right",
                             yarn.original_context, yarn.beta_fast, yarn.beta_slow),
                 source.path()};
  apply_yarn(yarn, base, rope.frequencies);
  // Models with this key scale the scores instead.
  TERCET_ASSIGN(const float log_multiplier, keys.number("rope.scaling.yarn_log_multiplier", 0.0f));
  if (log_multiplier == 0) rope.magnitude *= yarn_magnitude(factor, 1);
  return {};
}

// Factors that come as tensors: one list (Llama 3.1), or one for short and one for long sequences (longrope).
Status scale_by_tensors(const ModelSource& source, const ArchKeys& keys, RopeSpec& rope) {
  if (const TensorInfo* tensor = source.tensors.find("rope_freqs.weight")) {
    TERCET_ASSIGN(const std::vector<float> factors, read_factors(source, *tensor, rope.dims));
    rope.frequencies = divided(std::move(rope.frequencies), factors);
  }
  const TensorInfo* long_tensor = source.tensors.find("rope_factors_long.weight");
  const TensorInfo* short_tensor = source.tensors.find("rope_factors_short.weight");
  if (long_tensor == nullptr && short_tensor == nullptr) return {};
  if (long_tensor == nullptr || short_tensor == nullptr)
    return Error{ErrorCode::kCorrupt,
                 "of rope_factors_long.weight and rope_factors_short.weight one is missing", source.path()};
  TERCET_ASSIGN(const std::vector<float> long_factors, read_factors(source, *long_tensor, rope.dims));
  TERCET_ASSIGN(const std::vector<float> short_factors, read_factors(source, *short_tensor, rope.dims));
  TERCET_ASSIGN(rope.long_after, keys.size("rope.scaling.original_context_length"));
  rope.long_frequencies = divided(rope.frequencies, long_factors);
  rope.frequencies = divided(std::move(rope.frequencies), short_factors);
  return {};
}

Result<RopeSpec> common_rope(const ModelSource& source, const ArchKeys& keys, int head_dim,
                             const CommonDefaults& defaults) {
  RopeSpec rope;
  TERCET_ASSIGN(rope.dims, keys.size("rope.dimension_count", head_dim));
  if (rope.dims < 2 || rope.dims > kMaxRotaryDims || rope.dims % 2 != 0)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("rotary dimension count is {}, expected an even number up to {}", rope.dims,
                             kMaxRotaryDims),
                 source.path()};
  TERCET_ASSIGN(const double base, source.metadata.get_float_or(keys.full("rope.freq_base"), 10000.0));
  TERCET_ASSIGN(const std::string_view type,
                source.metadata.get_string_or(keys.full("rope.scaling.type"), "none"));
  TERCET_ASSIGN(const double factor, source.metadata.get_float_or(keys.full("rope.scaling.factor"), 1.0));
  TERCET_ASSIGN(rope.magnitude, source.metadata.get_float_or(keys.full("rope.scaling.attn_factor"), 1.0));
  if (!(factor > 0))
    return Error{ErrorCode::kInvalidArgument, "must be positive", keys.full("rope.scaling.factor")};
  rope.frequencies = rope_frequencies(rope.dims, base);
  if (type == "linear") {
    for (double& frequency : rope.frequencies) frequency = 1.0 / factor * frequency;
  } else if (type == "yarn") {
    TERCET_TRY(scale_by_yarn(source, keys, factor, base, defaults, rope));
  } else if (type != "none" && type != "longrope") {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("is {}, known are none, linear, yarn and longrope", format::quote(type)),
                 keys.full("rope.scaling.type")};
  }
  TERCET_TRY(scale_by_tensors(source, keys, rope));
  return rope;
}

}  // namespace

ArchKeys::ArchKeys(const ModelSource& source)
    : metadata_(source.metadata),
      prefix_(std::string(*source.metadata.get_string_or("general.architecture", "")) + ".") {}

Result<int> ArchKeys::size(std::string_view name, std::optional<int> fallback) const {
  const std::string key = full(name);
  if (!metadata_.has(key) && fallback.has_value()) return *fallback;
  TERCET_ASSIGN(const uint64_t value, metadata_.get_uint(key));
  return value > INT32_MAX ? -1 : static_cast<int>(value);
}

Result<float> ArchKeys::number(std::string_view name, std::optional<float> fallback) const {
  const std::string key = full(name);
  if (!metadata_.has(key) && fallback.has_value()) return *fallback;
  TERCET_ASSIGN(const double value, metadata_.get_float(key));
  return static_cast<float>(value);
}

Result<DecoderSpec> common_spec(const ModelSource& source, const CommonDefaults& defaults) {
  const ArchKeys keys(source);
  DecoderSpec spec;
  TERCET_ASSIGN(const int num_layers, keys.size("block_count"));
  TERCET_ASSIGN(spec.dim, keys.size("embedding_length"));
  TERCET_ASSIGN(spec.ffn_dim, keys.size("feed_forward_length"));
  TERCET_ASSIGN(spec.num_heads, keys.size("attention.head_count"));
  TERCET_ASSIGN(spec.num_kv_heads, get_kv_heads(source, keys, spec.num_heads));
  TERCET_ASSIGN(spec.context_length, keys.size("context_length"));
  TERCET_ASSIGN(spec.norm_eps, keys.number("attention.layer_norm_rms_epsilon"));
  // What the rest is computed from must make sense first.
  const bool divides = spec.num_heads > 0 && spec.dim > 0 && spec.dim % spec.num_heads == 0;
  if (num_layers < 1 || num_layers > kMaxLayers || (!divides && !keys.has("attention.key_length")))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} layers of {} attention heads over a width of {} cannot be right", num_layers,
                             spec.num_heads, spec.dim),
                 source.path()};
  TERCET_ASSIGN(spec.head_dim, keys.size("attention.key_length", divides ? spec.dim / spec.num_heads : 0));
  TERCET_ASSIGN(spec.v_dim, keys.size("attention.value_length", spec.head_dim));
  TERCET_ASSIGN(const RopeSpec rope, common_rope(source, keys, spec.head_dim, defaults));
  spec.ropes = {rope};
  spec.layers.resize(static_cast<size_t>(num_layers));
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(spec.head_dim)));
  TERCET_ASSIGN(spec.attention_scale, keys.number("attention.scale", scale));
  const TensorInfo* embedding = source.tensors.find("token_embd.weight");
  if (embedding == nullptr)
    return Error{ErrorCode::kCorrupt, "the tensor token_embd.weight is missing", source.path()};
  spec.vocab_size = embedding->outputs() > INT32_MAX ? -1 : static_cast<int>(embedding->outputs());
  return spec;
}

Status read_windows(const ModelSource& source, int period, DecoderSpec& spec) {
  const ArchKeys keys(source);
  TERCET_ASSIGN(const int window, keys.size("attention.sliding_window", 0));
  if (window == 0) return {};
  if (window < 0)
    return Error{ErrorCode::kInvalidArgument, "does not fit 31 bits", keys.full("attention.sliding_window")};
  const std::string pattern_key = keys.full("attention.sliding_window_pattern");
  const format::GgufEntry* pattern = source.metadata.find(pattern_key);
  std::vector<int64_t> slides;
  if (pattern != nullptr && pattern->is_array) {
    TERCET_ASSIGN(slides, source.metadata.get_ints(pattern_key, true));
    if (slides.size() != spec.layers.size())
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("has {} flags for {} layers", slides.size(), spec.layers.size()), pattern_key};
  } else {
    TERCET_ASSIGN(const int every, keys.size("attention.sliding_window_pattern", period));
    if (every < 0) return Error{ErrorCode::kInvalidArgument, "does not fit 31 bits", pattern_key};
    for (int i = 0; i < spec.num_layers(); ++i) slides.push_back(every == 0 || (i + 1) % every != 0);
  }
  for (size_t i = 0; i < slides.size(); ++i)
    if (slides[i] != 0) spec.layers[i].window = window;
  return {};
}

Status read_mixture(const ModelSource& source, const backend::RouterSpec& router, DecoderSpec& spec) {
  using Scores = backend::RouterSpec::Scores;
  const ArchKeys keys(source);
  TERCET_ASSIGN(const int num_experts, keys.size("expert_count", 0));
  if (num_experts == 0) return {};
  MoeSpec moe;
  moe.router = router;
  moe.router.num_experts = num_experts;
  TERCET_ASSIGN(moe.router.num_used, keys.size("expert_used_count"));
  TERCET_ASSIGN(const int gating, keys.size("expert_gating_func", 0));
  if (gating == 1) moe.router.scores = Scores::kSoftmax;
  if (gating == 2) moe.router.scores = Scores::kSigmoid;
  if (gating == 3) moe.router.scores = Scores::kSoftmaxOfChosen;
  if (gating < 0 || gating > 3)
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("is {}, known are 1 (softmax), 2 (sigmoid) and 3 (softmax of the chosen)", gating),
        keys.full("expert_gating_func")};
  TERCET_ASSIGN(moe.router.normalize,
                source.metadata.get_bool_or(keys.full("expert_weights_norm"), router.normalize));
  TERCET_ASSIGN(moe.router.scale, keys.number("expert_weights_scale", 1.0f));
  if (moe.router.scale == 0) moe.router.scale = 1;  // llama.cpp's way to say none
  TERCET_ASSIGN(const int groups, keys.size("expert_group_count", 0));
  if (groups != 0) {
    moe.router.num_groups = groups;
    TERCET_ASSIGN(moe.router.num_groups_used, keys.size("expert_group_used_count"));
    // DeepSeek V2 and V3 differ here as in their scores.
    moe.router.group_score = moe.router.scores == Scores::kSigmoid
                                 ? backend::RouterSpec::GroupScore::kSumOfTwoBest
                                 : backend::RouterSpec::GroupScore::kBest;
  }
  TERCET_ASSIGN(moe.ffn_dim, keys.size("expert_feed_forward_length", spec.ffn_dim));
  TERCET_ASSIGN(const int num_shared, keys.size("expert_shared_count", 0));
  const int64_t shared = int64_t{num_shared} * moe.ffn_dim;
  moe.shared_ffn_dim = shared > INT32_MAX ? -2 : static_cast<int>(shared);
  spec.moe = moe;
  for (size_t i = 0; i < spec.layers.size(); ++i)
    spec.layers[i].moe = source.tensors.find(fmt::format("blk.{}.ffn_gate_inp.weight", i)) != nullptr;
  return {};
}

}  // namespace tercet::model
