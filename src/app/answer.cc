#include "app/answer.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/memory_info.h"

namespace tercet::app {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

double Answer::prompt_speed() const {
  const int computed = usage.num_prompt_tokens - usage.num_cached_tokens;
  return computed > 0 && seconds_to_first_token > 0 ? computed / seconds_to_first_token : 0;
}

double Answer::generation_speed() const {
  const double seconds = seconds_total - seconds_to_first_token;
  return tokens.size() > 1 && seconds > 0 ? static_cast<double>(tokens.size() - 1) / seconds : 0;
}

Result<Answer> generate(core::Generator& generator, const core::Request& request,
                        const std::function<void(std::string_view)>& on_text,
                        const std::function<bool()>& interrupted) {
  const auto start = Clock::now();
  TERCET_TRY(generator.add(request));
  Answer answer;
  std::optional<double> first_token;
  bool finished = false;
  while (!finished) {
    if (!generator.busy())
      return Error{ErrorCode::kInternal, "the engine stopped without ending the answer", ""};
    if (interrupted()) generator.abort(request.id);
    TERCET_ASSIGN(const std::vector<core::TokenEvent> events, generator.step());
    for (const core::TokenEvent& event : events) {
      if (event.request_id != request.id) continue;
      if (event.token) {
        if (!first_token) first_token = seconds_since(start);
        answer.tokens.push_back(*event.token);
      }
      if (event.logprob) answer.logprobs.push_back(*event.logprob);
      if (!event.text.empty()) on_text(event.text);
      answer.text += event.text;
      if (!event.finish) continue;
      if (*event.finish == core::FinishReason::kError) return Error{ErrorCode::kInternal, event.error, ""};
      answer.finish = *event.finish;
      answer.usage = event.usage.value_or(core::Usage{});
      finished = true;
    }
  }
  answer.seconds_total = seconds_since(start);
  answer.seconds_to_first_token = first_token.value_or(answer.seconds_total);
  return answer;
}

const char* finish_reason_name(core::FinishReason reason) {
  switch (reason) {
    case core::FinishReason::kStop: return "stop";
    case core::FinishReason::kLength: return "length";
    case core::FinishReason::kAborted: return "aborted";
    case core::FinishReason::kError: return "error";
  }
  return "error";
}

std::string format_stats(const Answer& answer) {
  const core::Usage& usage = answer.usage;
  return fmt::format(
      "prompt: {} tokens ({} cached), {:.1f} tokens/s, first token after {:.3f} s\n"
      "answer: {} tokens, {:.1f} tokens/s, {:.3f} s in all, ended by {}\n"
      "memory: {:.0f} MB at most\n",
      usage.num_prompt_tokens, usage.num_cached_tokens, answer.prompt_speed(), answer.seconds_to_first_token,
      answer.tokens.size(), answer.generation_speed(), answer.seconds_total,
      finish_reason_name(answer.finish), static_cast<double>(peak_resident_memory()) / 1e6);
}

std::string to_json(const Answer& answer) {
  nlohmann::ordered_json json;
  json["text"] = answer.text;
  json["token_ids"] = answer.tokens;
  if (!answer.logprobs.empty()) {
    auto& logprobs = json["logprobs"] = nlohmann::ordered_json::array();
    for (const core::TokenLogprob& entry : answer.logprobs) logprobs.push_back(entry.logprob);
  }
  json["finish_reason"] = finish_reason_name(answer.finish);
  json["usage"] = {{"prompt_tokens", answer.usage.num_prompt_tokens},
                   {"cached_tokens", answer.usage.num_cached_tokens},
                   {"completion_tokens", answer.usage.num_output_tokens}};
  json["timings"] = {{"seconds_to_first_token", answer.seconds_to_first_token},
                     {"seconds_total", answer.seconds_total},
                     {"prompt_tokens_per_second", answer.prompt_speed()},
                     {"generation_tokens_per_second", answer.generation_speed()}};
  json["peak_memory_bytes"] = peak_resident_memory();
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tercet::app
