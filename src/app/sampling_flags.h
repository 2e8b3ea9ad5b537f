// Sampling parameters by name, as flags and the chat's /params give them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/types.h"

namespace tercet::app {

// A parameter that is one number. Its flag is --NAME.
struct SamplingFlag {
  std::string_view name;
  std::string_view help;
  double min;
  double max;
  bool is_integer;
};

std::span<const SamplingFlag> sampling_flags();

// Sets one parameter; kInvalidArgument when there is no such name, `text` is no number, or it is out of
// range. "seed" may be "random".
Status set_sampling(core::SamplingParams& params, std::string_view name, std::string_view text);

// "temp 0.8, top-k 40, ..."
std::string describe(const core::SamplingParams& params);

// A token id and a finite bias, as in 15043+1.5, 15043-1 or 15043=-1.
Result<std::pair<core::TokenId, float>> parse_logit_bias(std::string_view text);

}  // namespace tercet::app
