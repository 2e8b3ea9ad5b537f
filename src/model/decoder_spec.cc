#include "model/decoder_spec.h"

#include <fmt/format.h>

#include <cmath>

namespace tercet::model {
namespace {

// As kMaxLayers: above any model's, below any overflow.
constexpr int kMaxDim = 1 << 20;
constexpr int kMaxVocab = 1 << 24;

}  // namespace

void assign_kv_groups(DecoderSpec& spec) {
  spec.kv_groups.clear();
  for (int i = 0; i < spec.num_layers(); ++i) {
    LayerSpec& layer = spec.layers[static_cast<size_t>(i)];
    size_t group = 0;
    while (group < spec.kv_groups.size() && spec.kv_groups[group].window != layer.window) ++group;
    if (group == spec.kv_groups.size()) {
      kv::KvGroupSpec fresh;
      fresh.kind = layer.window == 0 ? kv::GroupKind::kFull : kv::GroupKind::kSlidingWindow;
      fresh.window = layer.window;
      spec.kv_groups.push_back(fresh);
    }
    spec.kv_groups[group].layers.push_back(i);
    layer.kv_group = static_cast<int>(group);
  }
}

Status check_spec(const DecoderSpec& spec, const std::string& where) {
  struct Limit {
    const char* name;
    int64_t value;
    int64_t max;
  };
  const Limit limits[] = {
      {"block count", spec.num_layers(), kMaxLayers},
      {"embedding length", spec.dim, kMaxDim},
      {"feed-forward length", spec.ffn_dim, kMaxDim},
      {"attention head count", spec.num_heads, kMaxDim},
      {"attention KV head count", spec.num_kv_heads, kMaxDim},
      {"attention head size", spec.head_dim, kMaxDim},
      {"vocabulary size", spec.vocab_size, kMaxVocab},
      {"context length", spec.context_length, INT32_MAX / 2},
  };
  for (const Limit& limit : limits)
    if (limit.value < 1 || limit.value > limit.max)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{} is {}, expected 1 to {}", limit.name, limit.value, limit.max), where};
  const auto fail = [&](std::string message) {
    return Error{ErrorCode::kInvalidArgument, std::move(message), where};
  };
  if (spec.num_heads % spec.num_kv_heads != 0)
    return fail(
        fmt::format("{} attention heads cannot share {} KV heads evenly", spec.num_heads, spec.num_kv_heads));
  if (!std::isfinite(spec.norm_eps) || spec.norm_eps < 0)
    return fail(fmt::format("the norm's epsilon is {}, expected a small positive number", spec.norm_eps));
  for (const RopeSpec& rope : spec.ropes) {
    if (rope.dims < 2 || rope.dims % 2 != 0 || rope.dims > spec.head_dim)
      return fail(fmt::format("rotary dimension count is {}, expected an even number up to the head size {}",
                              rope.dims, spec.head_dim));
    if (!std::isfinite(rope.base) || rope.base <= 0 || !std::isfinite(rope.position_scale))
      return fail(fmt::format("rotary base {} and scale {} must be finite, the base positive", rope.base,
                              rope.position_scale));
  }
  return {};
}

}  // namespace tercet::model
