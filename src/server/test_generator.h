// For tests: a model of bytes, and a generator that answers what it is told, one event of each request a
// step.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/generator.h"
#include "server/served_model.h"

namespace tercet::server {

// Tokens 0 to 255 are the bytes, 256 is the end token "<end>".
inline constexpr core::TokenId kTestEnd = 256;

inline text::Tokenizer byte_tokenizer(bool with_fim = false) {
  text::TokenizerSpec spec;
  for (int byte = 0; byte < 256; ++byte) {
    spec.texts.emplace_back(1, static_cast<char>(byte));
    spec.pieces.emplace_back(1, static_cast<char>(byte));
    spec.bpe.byte_tokens[static_cast<size_t>(byte)] = byte;
  }
  for (const char* special : {"<end>", "<pre>", "<suf>", "<mid>"}) {
    spec.texts.emplace_back();
    spec.pieces.emplace_back(special);
  }
  spec.is_control.assign(260, 0);
  for (size_t id = 256; id < 260; ++id) spec.is_control[id] = 1;
  spec.end_tokens = {kTestEnd};
  spec.eos = kTestEnd;
  if (with_fim) spec.fim = {257, 258, 259};
  return *text::Tokenizer::create(std::move(spec));
}

inline ServedModel test_model(bool with_fim = false) {
  constexpr const char* kTemplate =
      "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
      "{% if reasoning_effort %}effort {{ reasoning_effort }}\n{% endif %}"
      "{% if tools %}{{ tools[0].function.name }}\n{% endif %}"
      "{% if add_generation_prompt %}assistant: {% endif %}";
  ServedModel model{
      {"test", "alias"},
      {byte_tokenizer(with_fim), *text::ChatTemplate::parse(kTemplate), {{"eos_token", "<end>"}}},
      {},
      100,
      7,
      "print",
      "1.2.3"};
  model.embedding_size = 4;
  return model;
}

// Events of an answer, one for each character, that ends for `reason`.
inline std::vector<core::TokenEvent> answer_events(const std::string& text,
                                                   core::FinishReason reason = core::FinishReason::kStop) {
  std::vector<core::TokenEvent> events;
  for (const char c : text) {
    core::TokenEvent event;
    event.token = static_cast<unsigned char>(c);
    event.text = std::string(1, c);
    event.text_offset = static_cast<int64_t>(events.size());
    event.logprob = core::TokenLogprob{*event.token, -0.5f};
    event.top_logprobs = {{*event.token, -0.5f}, {'z', -2.0f}};
    events.push_back(std::move(event));
  }
  if (events.empty()) events.emplace_back();
  events.back().finish = reason;
  return events;
}

class TestGenerator : public core::Generator {
 public:
  // Set before the first request.
  std::function<std::vector<core::TokenEvent>(const core::Request&)> answer = [](const core::Request&) {
    return answer_events("hello");
  };
  std::function<std::vector<float>(const core::Request&)> embedding = [](const core::Request& request) {
    return std::vector<float>{3, static_cast<float>(request.prompt.size()), 0, -1};
  };
  Status refusal;                 // of every request
  size_t max_requests = 1 << 20;  // the queue is full for more
  bool stands_still = false;      // after the first event of each
  bool never_ends = false;        // no event at all, unless it is aborted

  Status add(core::Request request) override {
    if (!refusal.ok()) return refusal;
    const std::lock_guard lock(mutex_);
    if (running_.size() == max_requests) return Error{ErrorCode::kExhausted, "the queue is full", ""};
    std::vector<core::TokenEvent> events = answer(request);
    int num_tokens = 0;
    for (core::TokenEvent& event : events) {
      event.request_id = request.id;
      num_tokens += event.token.has_value();
    }
    if (request.embedding && events.back().finish == core::FinishReason::kStop) {
      events = {events.back()};
      events[0].token.reset();
      events[0].embedding = embedding(request);
      num_tokens = 0;
    }
    if (events.back().finish)
      events.back().usage = core::Usage{static_cast<int>(request.prompt.size()), 2, num_tokens};
    running_[request.id] = {std::move(events), 0};
    most_at_once_ = std::max(most_at_once_, static_cast<int>(running_.size()));
    requests_.push_back(std::move(request));
    return {};
  }
  void abort(uint64_t id) override {
    const std::lock_guard lock(mutex_);
    if (!running_.contains(id)) return;
    core::TokenEvent event;
    event.request_id = id;
    event.finish = core::FinishReason::kAborted;
    event.usage.emplace();
    running_[id] = {{event}, 0};
    ++num_aborts_;
  }
  bool busy() const override {
    const std::lock_guard lock(mutex_);
    return !running_.empty();
  }
  Result<std::vector<core::TokenEvent>> step() override {
    const std::lock_guard lock(mutex_);
    std::vector<core::TokenEvent> events;
    for (auto next = running_.begin(); next != running_.end();) {
      auto& [id, running] = *next++;
      auto& [of_request, done] = running;
      const bool waits = never_ends || (stands_still && done > 0);
      if (waits && of_request[done].finish != core::FinishReason::kAborted) continue;
      events.push_back(of_request[done]);
      if (++done == of_request.size()) running_.erase(id);
    }
    return events;
  }

  std::vector<core::Request> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  int most_at_once() const {
    const std::lock_guard lock(mutex_);
    return most_at_once_;
  }
  int num_aborts() const {
    const std::lock_guard lock(mutex_);
    return num_aborts_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<uint64_t, std::pair<std::vector<core::TokenEvent>, size_t>> running_;
  std::vector<core::Request> requests_;
  int num_aborts_ = 0;
  int most_at_once_ = 0;
};

}  // namespace tercet::server
