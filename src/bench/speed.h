// How fast a loaded model reads a prompt and generates, against what the machine's memory allows.
#pragma once

#include <functional>
#include <vector>

#include "engine/llm.h"

namespace tercet::bench {

struct SpeedOptions {
  int prompt_tokens = 512;
  int new_tokens = 64;
  int repetitions = 3;
};

// One value for each repetition; the repetitions take the measurements in turn.
struct SpeedResult {
  std::vector<double> prompt_speed;      // tokens per second
  std::vector<double> generation_speed;  // tokens per second, after a prompt of `prompt_tokens`
  std::vector<double> read_bandwidth;    // bytes per second
  double bytes_per_token = 0;            // weights and KV that one generated token reads, on average
};

struct Spread {
  double min = 0, median = 0, max = 0;
};
Spread spread(std::vector<double> values);

// The fraction of the read bandwidth that generation used: the median over the repetitions.
double bandwidth_fraction(const SpeedResult& result);

// Random prompts, a new one each time, so that nothing is cached. `progress(done, total)` counts repetitions.
Result<SpeedResult> measure_speed(engine::Llm& llm, const SpeedOptions& options,
                                  const std::function<void(int done, int total)>& progress);

}  // namespace tercet::bench
