// What values of SamplingParams mean, and which are accepted. Pure functions; safe from any thread.
#pragma once

#include <optional>

#include "base/result.h"
#include "core/types.h"

namespace tercet::sample {

// Below this a temperature counts as 0, as in vLLM: nothing but rounding would be left of the noise.
inline constexpr float kMinTemperature = 1e-5f;

inline bool is_greedy(const core::SamplingParams& params) { return params.temperature < kMinTemperature; }

// kInvalidArgument with `where` the field, what was found and the range. With a vocabulary size, ids in
// logit_bias must lie within it; without, they must not be negative.
Status validate(const core::SamplingParams& params, std::optional<int> vocab_size = std::nullopt);

}  // namespace tercet::sample
