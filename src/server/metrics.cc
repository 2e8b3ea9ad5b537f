#include "server/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace tercet::server {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;
using Buckets = Histogram::BucketBoundaries;
using Clock = RequestTimes::Clock;

const Buckets kFirstTokenSeconds = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5,
                                    0.75,  1,     2.5,  5,    7.5,  10,   20,   40,  80,   160};
const Buckets kTokenSeconds = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5};
const Buckets kRequestSeconds = {0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480};
const Buckets kTokens = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};

const char* reason_name(core::FinishReason reason) {
  switch (reason) {
    case core::FinishReason::kStop: return "stop";
    case core::FinishReason::kLength: return "length";
    case core::FinishReason::kAborted: return "abort";
    case core::FinishReason::kError: return "error";
  }
  return "error";
}

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

struct Metrics::Series {
  explicit Series(const std::string& model) : labels{{"model_name", model}} {}

  template <class T, class Builder>
  prometheus::Family<T>& family(Builder build, const char* name, const char* help) {
    return build.Name(name).Help(help).Register(registry);
  }
  Counter& counter(const char* name, const char* help) { return counters(name, help).Add(labels); }
  prometheus::Family<Counter>& counters(const char* name, const char* help) {
    return family<Counter>(prometheus::BuildCounter(), name, help);
  }
  Gauge& gauge(const char* name, const char* help) {
    return family<Gauge>(prometheus::BuildGauge(), name, help).Add(labels);
  }
  Histogram& histogram(const char* name, const char* help, const Buckets& buckets) {
    return family<Histogram>(prometheus::BuildHistogram(), name, help).Add(labels, buckets);
  }

  prometheus::Labels labels;
  prometheus::Registry registry;

  Gauge& running = gauge("vllm:num_requests_running", "Requests that hold KV blocks.");
  Gauge& waiting = gauge("vllm:num_requests_waiting", "Requests that wait to run.");
  Gauge& kv_usage = gauge("vllm:kv_cache_usage_perc", "Part of the KV blocks in use; 1 is all of them.");
  Counter& preemptions = counter("vllm:num_preemptions_total", "Preemptions since the start.");
  Counter& cache_queries =
      counter("vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.");
  Counter& cache_hits = counter("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache.");
  Counter& prompt_tokens =
      counter("vllm:prompt_tokens_total", "Prompt tokens of requests that began to answer.");
  Counter& generated_tokens = counter("vllm:generation_tokens_total", "Tokens generated.");
  prometheus::Family<Counter>& finished =
      counters("vllm:request_success_total", "Requests that ended, by reason.");
  Histogram& first_token = histogram("vllm:time_to_first_token_seconds",
                                     "From a request's arrival to its first token.", kFirstTokenSeconds);
  Histogram& between_tokens =
      histogram("vllm:inter_token_latency_seconds", "Between two tokens of a request.", kTokenSeconds);
  Histogram& whole_request =
      histogram("vllm:e2e_request_latency_seconds", "From a request's arrival to its end.", kRequestSeconds);
  Histogram& prompt_size = histogram("vllm:request_prompt_tokens", "Prompt tokens of a request.", kTokens);
  Histogram& answer_size =
      histogram("vllm:request_generation_tokens", "Tokens generated for a request.", kTokens);
  Gauge& connections = gauge("tercet:http_connections", "Open connections.");
  prometheus::Family<Counter>& refused =
      counters("tercet:requests_refused_total", "Requests that did not run, by HTTP status.");
};

Metrics::Metrics(const std::string& model) : series_(std::make_unique<Series>(model)) {}
Metrics::~Metrics() = default;

void Metrics::observe(RequestTimes& times, std::span<const core::TokenEvent> events) {
  const auto now = Clock::now();
  Series& series = *series_;
  for (const core::TokenEvent& event : events) {
    const bool first = times.last_token == Clock::time_point();
    // An answer need not have tokens: an embedding has none.
    const bool answered = event.token || event.finish == core::FinishReason::kStop ||
                          event.finish == core::FinishReason::kLength;
    if (answered && first) {
      num_prompt_tokens_ += times.num_prompt_tokens;
      series.prompt_tokens.Increment(times.num_prompt_tokens);
    }
    if (event.token) {
      if (first) {
        series.first_token.Observe(seconds(now - times.arrival));
      } else {
        series.between_tokens.Observe(seconds(now - times.last_token));
      }
      times.last_token = now;
      ++num_generated_tokens_;
      series.generated_tokens.Increment();
    }
    if (!event.finish) continue;
    prometheus::Labels labels = series.labels;
    labels.emplace("finished_reason", reason_name(*event.finish));
    series.finished.Add(labels).Increment();
    series.whole_request.Observe(seconds(now - times.arrival));
    series.prompt_size.Observe(times.num_prompt_tokens);
    if (event.usage) series.answer_size.Observe(event.usage->num_output_tokens);
  }
}

void Metrics::count_refusal(int status) {
  prometheus::Labels labels = series_->labels;
  labels.emplace("status", std::to_string(status));
  series_->refused.Add(labels).Increment();
}

std::string Metrics::render(const core::GeneratorStats& stats, int num_connections) const {
  Series& series = *series_;
  const auto advance = [](Counter& counter, int64_t value) {
    counter.Increment(static_cast<double>(value) - counter.Value());
  };
  series.running.Set(stats.num_running);
  series.waiting.Set(stats.num_waiting);
  series.kv_usage.Set(stats.kv_usage);
  series.connections.Set(num_connections);
  advance(series.preemptions, stats.num_preemptions);
  advance(series.cache_queries, stats.num_prompt_tokens);
  advance(series.cache_hits, stats.num_cached_tokens);
  return prometheus::TextSerializer().Serialize(series.registry.Collect());
}

}  // namespace tercet::server
