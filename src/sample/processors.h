// Logits processors, one function each, in the order in which the sampler applies them. docs/sampling.md
// defines them.
//
// The first ones change a row of logits, [vocab]; -infinity (kRemoved) marks a removed token. The others
// select among candidates. Ties are never left to chance: the order is total, value descending, then id
// ascending.
//
// Pure functions of their arguments; safe from any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "core/types.h"
#include "sample/sampler_state.h"

namespace tercet::sample {

// The logit of a removed token.
inline constexpr float kRemoved = -std::numeric_limits<float>::infinity();

// Adds each bias to its token's logit.
void apply_bias(std::span<float> logits, std::span<const std::pair<core::TokenId, float>> bias);

// Repetition (Keskar et al. 2019, CTRL): a token of the prompt or the output has a positive logit divided by
// the penalty, a negative one multiplied. Then frequency and presence (OpenAI): a token that occurs c > 0
// times in the output loses c * frequency_penalty + presence_penalty.
void apply_penalties(std::span<float> logits, const core::SamplingParams& params, const SamplerState& state);

// Removes token t unless bit t % 64 of allowed[t / 64] is set. `allowed` covers the vocabulary.
void apply_allowed(std::span<float> logits, std::span<const uint64_t> allowed);

// Removes the listed tokens.
void apply_banned(std::span<float> logits, std::span<const core::TokenId> banned);

// logits / temperature.
void apply_temperature(std::span<float> logits, float temperature);

struct Candidate {
  core::TokenId token;
  float logit;   // after the processors above
  float weight;  // softmax_weight(logit, largest logit of the row): the unnormalised probability
};

// Ascending by token, between any two processors.
using Candidates = std::vector<Candidate>;

// The sum of the weights, in the order of softmax.h.
double weight_sum(const Candidates& candidates);

// The tokens of a row that are not removed and whose logit is at least `max` + `lowest`. `max` is the row's
// largest.
void gather(std::span<const float> logits, float max, float lowest, Candidates& candidates);

// Keeps the k first in the total order. From a row, since few of its tokens need to become candidates.
void top_k(std::span<const float> logits, float max, int k, Candidates& candidates);

// Keeps the smallest number of tokens, in the total order, whose probability reaches p; at least one
// (Holtzman et al. 2019, nucleus sampling).
void top_p(Candidates& candidates, float p);
void top_p(std::span<const float> logits, float max, float p, Candidates& candidates);

// Keeps tokens whose probability is at least p times the largest (Nguyen et al. 2024).
void min_p(Candidates& candidates, float p);
void min_p(std::span<const float> logits, float max, float p, Candidates& candidates);

// Keeps the smallest number of tokens whose probability reaches p; at least one, in the order of the distance
// between a token's information -log q and the entropy; ties in the total order (Meister et al. 2022, locally
// typical sampling).
void typical(Candidates& candidates, float p);

}  // namespace tercet::sample
