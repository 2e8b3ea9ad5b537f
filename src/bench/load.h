// Load on a running OpenAI-compatible server: requests to /v1/completions, as streams, and when each part of
// each answer came.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "http/client.h"

namespace tercet::bench {

struct LoadTarget {
  http::Origin origin;
  std::string path = "/v1";  // of the API
  std::string model;         // as the server calls it; "": the first one that it lists
  std::string api_key;
  std::chrono::milliseconds timeout{600'000};  // for one request
};

struct LoadRequest {
  double start = 0;  // seconds after the beginning; a closed loop has its own times
  int new_tokens = 1;
};

struct LoadPlan {
  std::vector<LoadRequest> requests;
  std::function<std::vector<int32_t>(size_t index)> prompt;  // token ids
  int clients = 0;  // closed loop: each sends its next request when its last one has ended; 0: by `start`
};

// Requests at random times, so that they come independently (a Poisson process): `rate` in a second.
std::vector<LoadRequest> poisson_requests(int count, double rate, int new_tokens, uint64_t seed);

// What became of a request. Times are in seconds after the beginning.
struct LoadRecord {
  double start = 0, first_token = 0, end = 0;
  std::vector<double> gaps;  // seconds between parts of the stream that bring text
  int prompt_tokens = 0, cached_tokens = 0, new_tokens = 0;
  bool ended = false;
  std::string error;  // "": all is well

  bool completed() const { return ended && error.empty(); }
  // Seconds for each token after the first, on average.
  double per_token() const { return new_tokens > 1 ? (end - first_token) / (new_tokens - 1) : 0; }
};

struct LoadProgress {
  int num_ended = 0, num_running = 0;
};

struct LoadResult {
  std::string model;
  std::vector<LoadRecord> records;  // of the requests that were sent, in the order of the plan
  double seconds = 0;               // from the beginning to the last end
};

// Runs the plan. `go_on` is called several times a second; after it returned false nothing more is waited
// for. Errors of single requests are in their records; an error here says that no model was to be found.
Result<LoadResult> run_load(LoadTarget target, const LoadPlan& plan,
                            const std::function<bool(const LoadProgress&)>& go_on);

struct Quantiles {
  double mean = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0;
};
// p50 is the smallest value that at least half of the values do not exceed, and so on; zeros without values.
Quantiles quantiles(std::vector<double> values);

// Seconds that a good answer takes at most; 0: any time is good.
struct LoadObjectives {
  double first_token = 0;
  double per_token = 0;
};

struct LoadSummary {
  int num_completed = 0, num_unfinished = 0, num_good = 0;
  std::map<std::string, int> errors;  // requests that failed, by reason
  int64_t prompt_tokens = 0, cached_tokens = 0, new_tokens = 0;
  // Seconds; of completed requests.
  Quantiles first_token, between_tokens, per_token, whole;
};
LoadSummary summarize(const LoadResult& result, const LoadObjectives& objectives);

}  // namespace tercet::bench
