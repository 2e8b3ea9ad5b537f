#include "sample/params.h"

#include <fmt/format.h>

#include <limits>

namespace tercet::sample {
namespace {

constexpr float kMaxFloat = std::numeric_limits<float>::max();

Error invalid(std::string where, std::string message) {
  return Error{ErrorCode::kInvalidArgument, std::move(message), std::move(where)};
}

// NaN lies in no range.
Status check_range(const char* field, float value, float low, float high) {
  if (value >= low && value <= high) return {};
  std::string range = high == kMaxFloat ? fmt::format("a finite number, at least {}", low)
                                        : fmt::format("between {} and {}", low, high);
  return invalid(field, fmt::format("is {}; it must be {}", value, range));
}

Status check_bias(const std::vector<std::pair<core::TokenId, float>>& bias, std::optional<int> vocab_size) {
  for (auto [token, value] : bias) {
    if (token < 0 || (vocab_size && token >= *vocab_size)) {
      std::string range = vocab_size ? fmt::format("between 0 and {}", *vocab_size - 1) : "0 or more";
      return invalid("logit_bias", fmt::format("names token {}; ids are {}", token, range));
    }
    if (!(value >= -kMaxFloat && value <= kMaxFloat)) {
      return invalid("logit_bias",
                     fmt::format("of token {} is {}; it must be a finite number", token, value));
    }
  }
  return {};
}

}  // namespace

Status validate(const core::SamplingParams& params, std::optional<int> vocab_size) {
  TERCET_TRY(check_range("temperature", params.temperature, 0, kMaxFloat));
  if (params.top_k < -1) {
    return invalid("top_k",
                   fmt::format("is {}; it must be at least 1, or 0 or -1 for all tokens", params.top_k));
  }
  TERCET_TRY(check_range("top_p", params.top_p, 0, 1));
  TERCET_TRY(check_range("min_p", params.min_p, 0, 1));
  TERCET_TRY(check_range("typical_p", params.typical_p, 0, 1));
  if (!(params.repetition_penalty > 0 && params.repetition_penalty <= kMaxFloat)) {
    return invalid("repetition_penalty",
                   fmt::format("is {}; it must be a finite number above 0 (1 changes nothing)",
                               params.repetition_penalty));
  }
  TERCET_TRY(check_range("presence_penalty", params.presence_penalty, -2, 2));
  TERCET_TRY(check_range("frequency_penalty", params.frequency_penalty, -2, 2));
  if (params.num_logprobs < -1) {
    return invalid("num_logprobs",
                   fmt::format("is {}; it must be at least 0, or -1 for none", params.num_logprobs));
  }
  return check_bias(params.logit_bias, vocab_size);
}

}  // namespace tercet::sample
