// Log-probabilities to report: of the raw logits, before any processor. Pure functions; safe from any thread.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "core/types.h"
#include "sample/softmax.h"

namespace tercet::sample {

struct Logprobs {
  core::TokenLogprob chosen;
  std::vector<core::TokenLogprob> top;  // best first; ties by lower id
};

// log softmax(logits) of `token` and of the `num_top` best tokens (all, if there are fewer). For prompts and
// evaluation; sample() reports the same numbers. kInternal if the row has a NaN or an infinity, naming
// `position`.
Result<Logprobs> logprobs(std::span<const float> logits, core::TokenId token, int num_top, int64_t position);

// The same for a row that scan_row() found finite, with its largest element.
Logprobs logprobs_of_finite(std::span<const float> logits, float max, core::TokenId token, int num_top);

// kInternal, naming the first bad token of the row at `position`, unless the scan found only finite values.
Status check_finite(std::span<const float> logits, const RowScan& scan, int64_t position);

}  // namespace tercet::sample
