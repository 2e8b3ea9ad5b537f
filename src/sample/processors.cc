#include "sample/processors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/check.h"
#include "base/math.h"
#include "sample/softmax.h"

namespace tercet::sample {
namespace {

float& at(std::span<float> logits, core::TokenId token) {
  TERCET_CHECK(token >= 0 && static_cast<size_t>(token) < logits.size());
  return logits[token];
}

bool by_value(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

bool by_token(const Candidate& a, const Candidate& b) { return a.token < b.token; }

// The sum of value(candidate), in the order of softmax.h.
template <class Value>
double lane_sum(const Candidates& candidates, Value value) {
  std::array<double, kLanes> lanes{};
  for (const Candidate& candidate : candidates) lanes[candidate.token % kLanes] += value(candidate);
  return tree_sum(lanes);
}

// Where the running sum of the weights, in order, first reaches `target`: that candidate's index, or the size
// if it never does. Moves the candidates so that those before the index come first; nullopt if the sums are
// too close to call without adding in order. Weighted quickselect: expected linear time.
template <class Less>
std::optional<size_t> select_prefix(Candidates& candidates, Less less, double target) {
  // Sums in different orders of a vocabulary's worth of doubles differ by far less.
  constexpr double kMargin = 1e-9;
  size_t begin = 0, end = candidates.size();
  double before = 0;  // the sum of [0, begin), which does not reach the target
  while (end - begin > 1) {
    size_t middle = begin + (end - begin) / 2;
    std::nth_element(candidates.begin() + begin, candidates.begin() + middle, candidates.begin() + end, less);
    double sum = before;
    for (size_t i = begin; i < middle; ++i) sum += candidates[i].weight;
    if (std::fabs(sum - target) <= kMargin * target && target > 0) return std::nullopt;
    if (sum >= target) {
      end = middle;
    } else {
      before = sum;
      begin = middle;
    }
  }
  double sum = before + candidates[begin].weight;
  if (std::fabs(sum - target) <= kMargin * target && target > 0) return std::nullopt;
  return sum >= target ? begin : candidates.size();
}

// The same by adding in order; leaves the candidates sorted.
template <class Less>
size_t scan_prefix(Candidates& candidates, Less less, double target) {
  std::sort(candidates.begin(), candidates.end(), less);
  double sum = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    sum += candidates[i].weight;
    if (sum >= target) return i;
  }
  return candidates.size();
}

// Keeps the shortest prefix, in the given total order, whose weights add up to `target`, and restores the
// order by token. False, and all are kept, if their sum does not reach it.
template <class Less>
bool keep_prefix(Candidates& candidates, Less less, double target) {
  if (candidates.empty()) return false;
  std::optional<size_t> selected = select_prefix(candidates, less, target);
  size_t last = selected ? *selected : scan_prefix(candidates, less, target);
  bool reached = last < candidates.size();
  if (reached) candidates.resize(last + 1);
  std::sort(candidates.begin(), candidates.end(), by_token);
  return reached;
}

}  // namespace

double weight_sum(const Candidates& candidates) {
  return lane_sum(candidates, [](const Candidate& candidate) { return double{candidate.weight}; });
}

void apply_bias(std::span<float> logits, std::span<const std::pair<core::TokenId, float>> bias) {
  for (auto [token, value] : bias) at(logits, token) += value;
}

void apply_penalties(std::span<float> logits, const core::SamplingParams& params, const SamplerState& state) {
  if (params.repetition_penalty != 1) {
    auto penalize = [&](core::TokenId token) {
      float& logit = at(logits, token);
      logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
    };
    std::span<const core::TokenId> prompt = state.prompt_tokens();
    for (core::TokenId token : prompt) penalize(token);
    for (auto [token, count] : state.output_counts()) {
      if (!std::binary_search(prompt.begin(), prompt.end(), token)) penalize(token);
    }
  }
  if (params.frequency_penalty != 0 || params.presence_penalty != 0) {
    for (auto [token, count] : state.output_counts()) {
      float& logit = at(logits, token);
      logit = logit - static_cast<float>(count) * params.frequency_penalty - params.presence_penalty;
    }
  }
}

void apply_allowed(std::span<float> logits, std::span<const uint64_t> allowed) {
  TERCET_CHECK(allowed.size() * 64 >= logits.size());
  for (size_t word = 0; word * 64 < logits.size(); ++word) {
    if (allowed[word] == ~uint64_t{0}) continue;
    size_t end = std::min(logits.size(), word * 64 + 64);
    for (size_t i = word * 64; i < end; ++i) {
      if (!(allowed[word] >> (i % 64) & 1)) logits[i] = kRemoved;
    }
  }
}

void apply_banned(std::span<float> logits, std::span<const core::TokenId> banned) {
  for (core::TokenId token : banned) at(logits, token) = kRemoved;
}

void apply_temperature(std::span<float> logits, float temperature) {
  for (float& logit : logits) logit /= temperature;
}

void gather(std::span<const float> logits, float max, float lowest, Candidates& candidates) {
  candidates.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    float difference = logits[i] - max;
    if (difference < lowest || logits[i] == kRemoved) continue;
    candidates.push_back({static_cast<core::TokenId>(i), logits[i], softmax_weight(logits[i], max)});
  }
}

void top_k(std::span<const float> logits, float max, int k, Candidates& candidates) {
  candidates.clear();
  size_t keep = static_cast<size_t>(k), capacity = std::max<size_t>(2 * keep, 1024);
  auto shrink = [&] {
    std::nth_element(candidates.begin(), candidates.begin() + (keep - 1), candidates.end(), by_value);
    candidates.resize(keep);
  };
  // A token must beat the k-th best so far; if it equals it, it loses by its higher id.
  float bar = kRemoved;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] > bar)) continue;
    candidates.push_back({static_cast<core::TokenId>(i), logits[i], 0});
    if (candidates.size() < capacity) continue;
    shrink();
    bar = candidates.back().logit;
  }
  if (candidates.size() > keep) shrink();
  std::sort(candidates.begin(), candidates.end(), by_token);
  for (Candidate& candidate : candidates) candidate.weight = softmax_weight(candidate.logit, max);
}

void top_p(Candidates& candidates, float p) { keep_prefix(candidates, by_value, p * weight_sum(candidates)); }

void top_p(std::span<const float> logits, float max, float p, Candidates& candidates) {
  double target = p * softmax_sum(logits, max);
  // The tokens within a distance of the best come first in the order, so they suffice once their sum reaches
  // p.
  for (float lowest : {-2.0f, -4.0f, -8.0f, -16.0f, -32.0f}) {
    gather(logits, max, lowest, candidates);
    if (weight_sum(candidates) >= target && keep_prefix(candidates, by_value, target)) return;
  }
  gather(logits, max, kRemoved, candidates);
  keep_prefix(candidates, by_value, target);
}

void min_p(Candidates& candidates, float p) {
  std::erase_if(candidates, [p](const Candidate& candidate) { return candidate.weight < p; });
}

void min_p(std::span<const float> logits, float max, float p, Candidates& candidates) {
  // The margin covers the rounding of the logarithm and of the weights.
  gather(logits, max, static_cast<float>(math::log(p)) - 0.001f, candidates);
  min_p(candidates, p);
}

void typical(Candidates& candidates, float p) {
  // -log q = log S - d with d = logit - max, so the distance from the entropy is that of d from its mean.
  float max =
      std::max_element(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
        return a.logit < b.logit;
      })->logit;
  double sum = weight_sum(candidates);
  double mean = lane_sum(candidates,
                         [max](const Candidate& candidate) {
                           return double{candidate.weight} * double{candidate.logit - max};
                         }) /
                sum;
  auto by_surprise = [max, mean](const Candidate& a, const Candidate& b) {
    double distance_a = std::fabs(double{a.logit - max} - mean),
           distance_b = std::fabs(double{b.logit - max} - mean);
    return distance_a != distance_b ? distance_a < distance_b : by_value(a, b);
  };
  keep_prefix(candidates, by_surprise, p * sum);
}

}  // namespace tercet::sample
