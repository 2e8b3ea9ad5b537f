// The sampler: from one row of logits to one token. docs/sampling.md gives the order and the definitions.
//
// The token is a pure function of the arguments: it does not depend on other requests, on what was sampled
// before (but through the SamplerState), or on which shortcut the code takes. So a verification of drafted
// tokens calls it once per position, with the state after the tokens before it, and gets what plain decoding
// would have got.
//
// Thread-safe as long as no two threads share a Scratch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "core/types.h"
#include "sample/processors.h"
#include "sample/sampler_state.h"

namespace tercet::sample {

// Where a row stands, besides the request's parameters.
struct SampleContext {
  int64_t position = 0;  // absolute position, in the sequence, of the token to choose
  uint64_t seed = 0;     // the request's; hash_seed(seed, i) for choice i of n
  RandomPurpose purpose = RandomPurpose::kSample;
  std::span<const uint64_t> allowed = {};      // a grammar's tokens, as a bit per token; empty: all
  std::span<const core::TokenId> banned = {};  // end tokens, before min_tokens
};

struct SampleResult {
  core::TokenId token = 0;
  std::optional<core::TokenLogprob> logprob;     // with num_logprobs >= 0
  std::vector<core::TokenLogprob> top_logprobs;  // the num_logprobs best, best first
};

// Memory reused from call to call; its contents mean nothing between them.
struct Scratch {
  std::vector<float> row;
  Candidates candidates;
};

// Chooses the token that follows. `logits`: [vocab], raw, on the host.
// Errors: what validate() refuses; a logit that is not finite (kInternal, names the position); no token left
// by the masks (kInvalidArgument).
Result<SampleResult> sample(std::span<const float> logits, const core::SamplingParams& params,
                            const SamplerState& state, const SampleContext& context, Scratch& scratch);

struct TokenProbability {
  core::TokenId token;
  double probability;
};

// The distribution that sample() draws from: the tokens that survive, ascending, with probabilities that add
// up to 1. For verification by rejection. Same errors.
Result<std::vector<TokenProbability>> distribution(std::span<const float> logits,
                                                   const core::SamplingParams& params,
                                                   const SamplerState& state, const SampleContext& context,
                                                   Scratch& scratch);

}  // namespace tercet::sample
