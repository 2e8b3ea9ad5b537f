#include "model/decoder_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace tercet::model {
namespace {

// As kMaxLayers: above any model's, below any overflow.
constexpr int kMaxDim = 1 << 20;
constexpr int kMaxHeadsDim = 1 << 24;
constexpr int kMaxVocab = 1 << 24;
constexpr int kMaxExperts = 1 << 14;

struct Limit {
  const char* name;
  int64_t value;
  int64_t max;
};

struct Check {
  const std::string& where;

  Error fail(std::string message) const {
    return Error{ErrorCode::kInvalidArgument, std::move(message), where};
  }
  Status sizes(std::initializer_list<Limit> limits) const {
    for (const Limit& limit : limits)
      if (limit.value < 1 || limit.value > limit.max)
        return fail(fmt::format("{} is {}, expected 1 to {}", limit.name, limit.value, limit.max));
    return {};
  }
};

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

Status check_rope(const Check& check, const RopeSpec& rope, int head_dim) {
  if (rope.dims < 2 || rope.dims % 2 != 0 || rope.dims > head_dim)
    return check.fail(fmt::format(
        "rotary dimension count is {}, expected an even number up to the head size {}", rope.dims, head_dim));
  const auto pairs = static_cast<size_t>(rope.dims / 2);
  if (rope.frequencies.size() != pairs ||
      (!rope.long_frequencies.empty() && rope.long_frequencies.size() != pairs))
    return check.fail(fmt::format("the {} rotary dimensions need {} frequencies", rope.dims, pairs));
  if (!all_finite(rope.frequencies) || !all_finite(rope.long_frequencies) || !std::isfinite(rope.magnitude))
    return check.fail("rotary frequencies must be finite: their base or a scaling factor cannot be right");
  return {};
}

Status check_moe(const Check& check, const MoeSpec& moe) {
  const backend::RouterSpec& router = moe.router;
  TERCET_TRY(check.sizes({{"expert count", router.num_experts, kMaxExperts},
                          {"count of experts used", router.num_used, router.num_experts},
                          {"expert feed-forward length", moe.ffn_dim, kMaxDim},
                          {"shared experts' feed-forward length", int64_t{moe.shared_ffn_dim} + 1, kMaxDim},
                          {"expert group count", router.num_groups, router.num_experts},
                          {"count of expert groups used", router.num_groups_used, router.num_groups}}));
  if (router.num_experts % router.num_groups != 0)
    return check.fail(
        fmt::format("{} experts do not form {} groups of equal size", router.num_experts, router.num_groups));
  const int choice = router.num_experts / router.num_groups * router.num_groups_used;
  if (router.num_used > choice)
    return check.fail(fmt::format("{} experts are used of the {} in {} groups", router.num_used, choice,
                                  router.num_groups_used));
  if (!std::isfinite(router.scale)) return check.fail("the experts' scale is not a finite number");
  return {};
}

}  // namespace

void assign_kv_groups(DecoderSpec& spec) {
  spec.kv_groups.clear();
  for (int i = 0; i < spec.num_layers(); ++i) {
    LayerSpec& layer = spec.layers[static_cast<size_t>(i)];
    size_t group = 0;
    while (group < spec.kv_groups.size() && spec.kv_groups[group].window != layer.window) ++group;
    if (group == spec.kv_groups.size()) {
      kv::KvGroupSpec fresh;
      fresh.kind = layer.window != 0 ? kv::GroupKind::kSlidingWindow
                   : spec.mla        ? kv::GroupKind::kLatent
                                     : kv::GroupKind::kFull;
      fresh.window = layer.window;
      spec.kv_groups.push_back(fresh);
    }
    spec.kv_groups[group].layers.push_back(i);
    layer.kv_group = static_cast<int>(group);
  }
}

int DecoderSpec::rope_variant(int max_tokens) const {
  for (const RopeSpec& rope : ropes)
    if (!rope.long_frequencies.empty() && max_tokens > rope.long_after) return 1;
  return 0;
}

Status check_spec(const DecoderSpec& spec, const std::string& where) {
  const Check check{where};
  TERCET_TRY(check.sizes({{"block count", spec.num_layers(), kMaxLayers},
                          {"embedding length", spec.dim, kMaxDim},
                          {"feed-forward length", spec.ffn_dim, kMaxDim},
                          {"attention head count", spec.num_heads, kMaxDim},
                          {"attention KV head count", spec.num_kv_heads, kMaxDim},
                          {"attention head size", spec.head_dim, kMaxDim},
                          {"attention value size", spec.v_dim, kMaxDim},
                          {"vocabulary size", spec.vocab_size, kMaxVocab},
                          {"context length", spec.context_length, INT32_MAX / 2}}));
  const auto heads_of = [&](int64_t size) { return spec.num_heads * size; };
  TERCET_TRY(check.sizes({{"width of all heads' queries", heads_of(spec.head_dim), kMaxHeadsDim},
                          {"width of all heads' values", heads_of(spec.v_dim), kMaxHeadsDim}}));
  if (spec.num_heads % spec.num_kv_heads != 0)
    return check.fail(
        fmt::format("{} attention heads cannot share {} KV heads evenly", spec.num_heads, spec.num_kv_heads));
  if (!std::isfinite(spec.norm_eps) || spec.norm_eps < 0)
    return check.fail(
        fmt::format("the norm's epsilon is {}, expected a small positive number", spec.norm_eps));
  for (const float factor : {spec.embedding_scale, spec.residual_scale, spec.attention_scale,
                             spec.logit_scale, spec.attention_soft_cap, spec.logit_soft_cap})
    if (!std::isfinite(factor)) return check.fail("a multiplier or soft cap is not a finite number");
  if (spec.ropes.size() > kMaxRopes)
    return check.fail(
        fmt::format("{} kinds of rotation, at most {} are supported", spec.ropes.size(), kMaxRopes));
  for (const RopeSpec& rope : spec.ropes)
    TERCET_TRY(check_rope(check, rope, spec.mla ? spec.mla->rope_dim : spec.head_dim));
  if (spec.mla)
    TERCET_TRY(check.sizes(
        {{"latent rank", spec.mla->kv_lora, kMaxDim},
         {"query's latent rank", int64_t{spec.mla->q_lora} + 1, kMaxDim},
         {"head size that is not rotated", spec.mla->nope_dim, kMaxDim},
         {"rotated head size", spec.mla->rope_dim, kMaxDim},
         {"value size of latent attention", spec.mla->v_dim, kMaxDim},
         {"width of all heads' keys and values",
          heads_of(int64_t{spec.mla->nope_dim} + spec.mla->rope_dim + spec.mla->v_dim), kMaxHeadsDim}}));
  return spec.moe ? check_moe(check, *spec.moe) : Status();
}

}  // namespace tercet::model
