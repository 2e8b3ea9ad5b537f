#include "sample/logprobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/math.h"
#include "sample/processors.h"

namespace tercet::sample {

Status check_finite(std::span<const float> logits, const RowScan& scan, int64_t position) {
  if (scan.all_finite) return {};
  auto bad = std::find_if(logits.begin(), logits.end(), [](float logit) { return !std::isfinite(logit); });
  return Error{
      ErrorCode::kInternal,
      fmt::format("the logit of token {} is {}; the model's weights or its arithmetic are broken (check the "
                  "file with `tercet inspect --check`)",
                  bad - logits.begin(), *bad),
      fmt::format("logits at position {}", position)};
}

Logprobs logprobs_of_finite(std::span<const float> logits, float max, core::TokenId token, int num_top) {
  TERCET_CHECK(token >= 0 && static_cast<size_t>(token) < logits.size());
  double log_sum = math::log(softmax_sum(logits, max));
  auto logprob = [&](core::TokenId id, float logit) {
    return core::TokenLogprob{id, static_cast<float>(double{logit} - max - log_sum)};
  };
  Logprobs result;
  result.chosen = logprob(token, logits[token]);
  if (num_top > 0) {
    Candidates best;
    top_k(logits, max, num_top, best);
    std::stable_sort(best.begin(), best.end(),
                     [](const Candidate& a, const Candidate& b) { return a.logit > b.logit; });
    for (const Candidate& candidate : best) result.top.push_back(logprob(candidate.token, candidate.logit));
  }
  return result;
}

Result<Logprobs> logprobs(std::span<const float> logits, core::TokenId token, int num_top, int64_t position) {
  RowScan scan = scan_row(logits);
  TERCET_TRY(check_finite(logits, scan, position));
  return logprobs_of_finite(logits, scan.max, token, num_top);
}

}  // namespace tercet::sample
