#include "app/sampling_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/parse_number.h"

namespace tercet::app {
namespace {

constexpr double kMaxInt = std::numeric_limits<int>::max();

constexpr std::array kFlags = {
    SamplingFlag{"temp", "temperature; 0 always takes the most likely token", 0, 100, false},
    SamplingFlag{"top-k", "keep the K most likely tokens; 0: all", 0, kMaxInt, true},
    SamplingFlag{"top-p", "keep the most likely tokens up to this probability together; 1: all", 0, 1, false},
    SamplingFlag{"min-p", "keep tokens at least this likely relative to the best; 0: all", 0, 1, false},
    SamplingFlag{"typical", "locally typical sampling; 1: off", 0, 1, false},
    SamplingFlag{"repeat-penalty", "divide the logits of tokens seen in prompt or answer; 1: off", 0.01, 100,
                 false},
    SamplingFlag{"presence-penalty", "lower the logits of tokens in the answer; 0: off", -100, 100, false},
    SamplingFlag{"frequency-penalty", "the same for each time they occur; 0: off", -100, 100, false},
};

float* float_of(core::SamplingParams& params, std::string_view name) {
  if (name == "temp") return &params.temperature;
  if (name == "top-p") return &params.top_p;
  if (name == "min-p") return &params.min_p;
  if (name == "typical") return &params.typical_p;
  if (name == "repeat-penalty") return &params.repetition_penalty;
  if (name == "presence-penalty") return &params.presence_penalty;
  if (name == "frequency-penalty") return &params.frequency_penalty;
  return nullptr;
}

Status set_seed(core::SamplingParams& params, std::string_view text) {
  params.seed = parse_number<uint64_t>(text);
  if (params.seed || text == "random") return {};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("is {}, expected a whole number from 0, or random", text), "seed"};
}

}  // namespace

std::span<const SamplingFlag> sampling_flags() { return kFlags; }

Status set_sampling(core::SamplingParams& params, std::string_view name, std::string_view text) {
  if (name == "seed") return set_seed(params, text);
  const auto flag = std::ranges::find(kFlags, name, &SamplingFlag::name);
  if (flag == kFlags.end()) {
    std::string names = "seed";
    for (const SamplingFlag& known : kFlags) names += fmt::format(", {}", known.name);
    return Error{ErrorCode::kInvalidArgument, "is no sampling parameter; there are: " + names,
                 std::string(name)};
  }
  const std::optional<double> value = parse_number<double>(text);
  if (!value || !(*value >= flag->min && *value <= flag->max) ||
      (flag->is_integer && *value != std::floor(*value))) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("is {}, expected a {}number from {} to {}", text,
                             flag->is_integer ? "whole " : "", flag->min, flag->max),
                 std::string(name)};
  }
  if (name == "top-k") params.top_k = static_cast<int>(*value);
  if (float* field = float_of(params, name)) *field = static_cast<float>(*value);
  return {};
}

std::string describe(const core::SamplingParams& params) {
  core::SamplingParams copy = params;
  std::string text;
  for (const SamplingFlag& flag : kFlags) {
    if (!text.empty()) text += ", ";
    if (const float* field = float_of(copy, flag.name)) {
      text += fmt::format("{} {:g}", flag.name, *field);
    } else {
      text += fmt::format("{} {}", flag.name, params.top_k);
    }
  }
  return text + ", seed " + (params.seed ? std::to_string(*params.seed) : "random");
}

Result<std::pair<core::TokenId, float>> parse_logit_bias(std::string_view text) {
  const size_t split = text.find_first_of("+-=", 1);
  if (split != text.npos) {
    const auto token = parse_number<core::TokenId>(text.substr(0, split));
    // parse_number takes a minus sign and no plus.
    const auto bias = parse_number<float>(text.substr(text[split] == '-' ? split : split + 1));
    if (token && *token >= 0 && bias && std::isfinite(*bias)) return std::pair(*token, *bias);
  }
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("is {}, expected a token id and a bias as in 15043+1.5, 15043-1 or 15043=-1", text),
      "logit-bias"};
}

}  // namespace tercet::app
