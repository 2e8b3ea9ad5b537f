#include "sample/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "sample/logprobs.h"
#include "sample/params.h"
#include "sample/processors.h"
#include "sample/softmax.h"

namespace tercet::sample {
namespace {

// argmax of logit + Gumbel noise over the tokens given to consider(), in any order; the lowest id wins a tie.
// Since the noise is bounded and non-decreasing in its uniform number, few tokens need its logarithms.
class GumbelArgmax {
 public:
  // x: the token's uniform number.
  void consider(core::TokenId token, float logit, uint32_t x) {
    if (logit + bound(x) < score_ || logit == kRemoved) return;
    float score = logit + gumbel(x);
    if (score > score_ || (score == score_ && token < token_)) {
      score_ = score;
      token_ = token;
    }
  }

  core::TokenId token() const { return token_; }

 private:
  // At least gumbel(x): -log(-log u) <= -log(1 - u), and 1 - u >= 2^-(zeros + 1).
  static float bound(uint32_t x) {
    constexpr float kLn2Above = 0.69315f;
    return static_cast<float>(std::countl_zero(~x) + 1) * kLn2Above;
  }

  float score_ = kRemoved;
  core::TokenId token_ = std::numeric_limits<core::TokenId>::max();
};

uint32_t uniform(const SampleContext& context, core::TokenId token) {
  return random_u32(context.seed, context.purpose, static_cast<uint64_t>(context.position),
                    static_cast<uint32_t>(token));
}

core::TokenId gumbel_argmax(const Candidates& candidates, const SampleContext& context) {
  GumbelArgmax argmax;
  for (const Candidate& candidate : candidates) {
    argmax.consider(candidate.token, candidate.logit, uniform(context, candidate.token));
  }
  return argmax.token();
}

core::TokenId gumbel_argmax(std::span<const float> logits, const RowScan& scan,
                            const SampleContext& context) {
  GumbelArgmax argmax;
  // A high score to begin with rules out most of the others.
  argmax.consider(scan.best, scan.max, uniform(context, scan.best));
  std::array<PhiloxBlock, 64> blocks;
  constexpr size_t kChunk = 4 * blocks.size();
  for (size_t begin = 0; begin < logits.size(); begin += kChunk) {
    size_t end = std::min(logits.size(), begin + kChunk);
    random_blocks(context.seed, context.purpose, static_cast<uint64_t>(context.position),
                  static_cast<uint32_t>(begin / 4), std::span(blocks).first((end - begin + 3) / 4));
    for (size_t i = begin; i < end; ++i) {
      argmax.consider(static_cast<core::TokenId>(i), logits[i], blocks[(i - begin) / 4][i % 4]);
    }
  }
  return argmax.token();
}

// A row after bias, penalties, masks and temperature: the raw one, or scratch.row.
struct ProcessedRow {
  std::span<const float> logits;
  RowScan scan;      // of `logits`
  RowScan raw_scan;  // of the raw row
};

bool changes_row(const core::SamplingParams& params, const SampleContext& context) {
  return !params.logit_bias.empty() || params.repetition_penalty != 1 || params.presence_penalty != 0 ||
         params.frequency_penalty != 0 || !context.allowed.empty() || !context.banned.empty() ||
         !(is_greedy(params) || params.temperature == 1);
}

Result<ProcessedRow> process_row(std::span<const float> logits, const core::SamplingParams& params,
                                 const SamplerState& state, const SampleContext& context, Scratch& scratch) {
  TERCET_CHECK(!logits.empty());
  TERCET_TRY(validate(params, static_cast<int>(logits.size())));
  ProcessedRow row{logits, scan_row(logits), {}};
  row.raw_scan = row.scan;
  TERCET_TRY(check_finite(logits, row.raw_scan, context.position));
  if (!changes_row(params, context)) return row;

  scratch.row.assign(logits.begin(), logits.end());
  std::span<float> processed = scratch.row;
  apply_bias(processed, params.logit_bias);
  apply_penalties(processed, params, state);
  if (!context.allowed.empty()) apply_allowed(processed, context.allowed);
  apply_banned(processed, context.banned);
  if (!is_greedy(params) && params.temperature != 1) apply_temperature(processed, params.temperature);
  row.logits = processed;
  row.scan = scan_row(processed);
  auto refuse = [&](std::string message) {
    return Error{ErrorCode::kInvalidArgument, std::move(message),
                 fmt::format("logits at position {}", context.position)};
  };
  if (row.scan.max == kRemoved) {
    return refuse(
        fmt::format("no token may follow: the grammar and the banned end tokens leave none of {}; relax "
                    "the grammar or lower min_tokens",
                    logits.size()));
  }
  if (row.scan.max > std::numeric_limits<float>::max()) {
    return refuse("logit_bias, the penalties or the temperature made a logit overflow; use smaller values");
  }
  return row;
}

// Fills `candidates` with the tokens that top-k, top-p, min-p and typical keep. False if none of them is in
// use and every token of the row stays.
bool truncate(const ProcessedRow& row, const core::SamplingParams& params, Candidates& candidates) {
  float max = row.scan.max;
  bool by_k = params.top_k > 0 && static_cast<size_t>(params.top_k) < row.logits.size();
  bool by_top_p = params.top_p < 1;
  bool by_min_p = params.min_p > 0;
  bool by_typical = params.typical_p < 1;
  // The first that is in use reads the row, the others what it left.
  if (by_k) {
    top_k(row.logits, max, params.top_k, candidates);
    if (by_top_p) top_p(candidates, params.top_p);
    if (by_min_p) min_p(candidates, params.min_p);
  } else if (by_top_p) {
    top_p(row.logits, max, params.top_p, candidates);
    if (by_min_p) min_p(candidates, params.min_p);
  } else if (by_min_p) {
    min_p(row.logits, max, params.min_p, candidates);
  } else if (by_typical) {
    gather(row.logits, max, kRemoved, candidates);
  } else {
    return false;
  }
  if (by_typical) typical(candidates, params.typical_p);
  return true;
}

core::TokenId choose(const ProcessedRow& row, const core::SamplingParams& params,
                     const SampleContext& context, Scratch& scratch) {
  if (is_greedy(params)) return row.scan.best;
  if (truncate(row, params, scratch.candidates)) return gumbel_argmax(scratch.candidates, context);
  return gumbel_argmax(row.logits, row.scan, context);
}

}  // namespace

Result<SampleResult> sample(std::span<const float> logits, const core::SamplingParams& params,
                            const SamplerState& state, const SampleContext& context, Scratch& scratch) {
  TERCET_ASSIGN(ProcessedRow row, process_row(logits, params, state, context, scratch));
  SampleResult result;
  result.token = choose(row, params, context, scratch);
  if (params.num_logprobs >= 0) {
    Logprobs reported = logprobs_of_finite(logits, row.raw_scan.max, result.token, params.num_logprobs);
    result.logprob = reported.chosen;
    result.top_logprobs = std::move(reported.top);
  }
  return result;
}

Result<std::vector<TokenProbability>> distribution(std::span<const float> logits,
                                                   const core::SamplingParams& params,
                                                   const SamplerState& state, const SampleContext& context,
                                                   Scratch& scratch) {
  TERCET_ASSIGN(ProcessedRow row, process_row(logits, params, state, context, scratch));
  if (is_greedy(params)) return std::vector<TokenProbability>{{row.scan.best, 1.0}};
  Candidates& candidates = scratch.candidates;
  if (!truncate(row, params, candidates)) gather(row.logits, row.scan.max, kRemoved, candidates);
  double sum = weight_sum(candidates);
  std::vector<TokenProbability> probabilities;
  probabilities.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    probabilities.push_back({candidate.token, candidate.weight / sum});
  }
  return probabilities;
}

}  // namespace tercet::sample
