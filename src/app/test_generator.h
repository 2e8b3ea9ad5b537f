// For tests: a generator that answers every request with given tokens, one a step.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "core/generator.h"

namespace tercet::app {

class TestGenerator : public core::Generator {
 public:
  std::vector<std::string> answer = {"an", "swer"};  // text of the tokens 100, 101, ...
  std::vector<core::Request> requests;               // all that were added
  std::string error;  // ends the answer with an error after its tokens, when not empty
  int steps_before_answer = 0;

  Status add(core::Request request) override {
    requests.push_back(std::move(request));
    step_ = -steps_before_answer;
    aborted_ = false;
    busy_ = true;
    return {};
  }
  void abort(uint64_t) override { aborted_ = true; }
  bool busy() const override { return busy_; }

  Result<std::vector<core::TokenEvent>> step() override {
    core::TokenEvent event;
    event.request_id = requests.back().id;
    const int at = step_++;
    if (at < 0 && !aborted_) return std::vector<core::TokenEvent>{};
    const auto size = static_cast<int>(answer.size());
    if (aborted_) {
      event.finish = core::FinishReason::kAborted;
    } else if (at < size) {
      event.token = 100 + at;
      event.text = answer[static_cast<size_t>(at)];
    }
    if (!aborted_ && at + 1 >= size) {
      event.finish = error.empty() ? core::FinishReason::kStop : core::FinishReason::kError;
      event.error = error;
    }
    if (event.finish) {
      const auto prompt = static_cast<int>(requests.back().prompt.size());
      event.usage = core::Usage{prompt, prompt / 2, std::min(at + 1, size)};
      busy_ = false;
    }
    return std::vector{event};
  }

 private:
  int step_ = 0;
  bool aborted_ = false;
  bool busy_ = false;
};

}  // namespace tercet::app
