// One answer of a generator: streams its text, keeps its tokens, times it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/generator.h"

namespace tercet::app {

struct Answer {
  std::string text;
  std::vector<core::TokenId> tokens;
  std::vector<core::TokenLogprob> logprobs;  // of the tokens, when asked for
  core::FinishReason finish = core::FinishReason::kStop;
  core::Usage usage;
  double seconds_to_first_token = 0;  // the whole time when there was no token
  double seconds_total = 0;

  // Tokens per second; 0 when there were too few to tell.
  double prompt_speed() const;      // of the part of the prompt that was not cached
  double generation_speed() const;  // after the first token
};

// Runs `request` alone. `on_text` gets the text as it comes. When `interrupted` says so between two steps,
// the request is aborted: the answer so far is returned with FinishReason::kAborted.
Result<Answer> generate(core::Generator& generator, const core::Request& request,
                        const std::function<void(std::string_view)>& on_text,
                        const std::function<bool()>& interrupted);

const char* finish_reason_name(core::FinishReason reason);  // "stop", "length", "aborted", "error"

// Lines for people.
std::string format_stats(const Answer& answer);

// The answer as one JSON object on one line.
std::string to_json(const Answer& answer);

}  // namespace tercet::app
