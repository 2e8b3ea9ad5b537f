// Metrics of a server, in Prometheus' text format under vLLM's names where it has them ("vllm:"), under
// tercet's own elsewhere.
//
// Every method may be called from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/generator.h"

namespace tercet::server {

// When things happened to one request.
struct RequestTimes {
  using Clock = std::chrono::steady_clock;
  explicit RequestTimes(int prompt_size) : num_prompt_tokens(prompt_size), arrival(Clock::now()) {}
  int num_prompt_tokens;
  Clock::time_point arrival;
  Clock::time_point last_token{};  // the epoch: none yet
};

class Metrics {
 public:
  // `model` labels every series.
  explicit Metrics(const std::string& model);
  ~Metrics();

  // Of one request in one step.
  void observe(RequestTimes& times, std::span<const core::TokenEvent> events);
  // A request was answered with this HTTP status without running.
  void count_refusal(int status);

  std::string render(const core::GeneratorStats& stats, int num_connections) const;

  int64_t num_prompt_tokens() const { return num_prompt_tokens_; }
  int64_t num_generated_tokens() const { return num_generated_tokens_; }

 private:
  struct Series;
  std::unique_ptr<Series> series_;
  std::atomic<int64_t> num_prompt_tokens_ = 0;
  std::atomic<int64_t> num_generated_tokens_ = 0;
};

}  // namespace tercet::server
