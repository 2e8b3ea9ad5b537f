// How fast a loaded model reads a prompt and generates, against what the machine's memory allows.
#pragma once

#include <functional>
#include <vector>

#include "engine/llm.h"

namespace tercet::bench {

struct SpeedOptions {
  int prompt_tokens = 512;
  int new_tokens = 64;  // of each sequence
  int sequences = 1;    // prompts that run together
  int repetitions = 3;
};

// One value for each repetition; the repetitions take the measurements in turn.
struct SpeedResult {
  std::vector<double> prompt_speed;      // tokens per second, of all sequences
  std::vector<double> generation_speed;  // likewise, once all of them generate

  std::vector<double> read_bandwidth;  // bytes per second
  double bytes_per_token = 0;  // weights and KV that a generated token's share of a step reads, on average
  double operations_per_token = 0;  // of a prompt, in linear layers; a multiply-add counts as two
};

struct Spread {
  double min = 0, median = 0, max = 0;
};
Spread spread(std::vector<double> values);

// The fraction of the read bandwidth that generation used, and of the multipliers' `peak_operations` per
// second that the prompt did: the median over the repetitions.
double bandwidth_fraction(const SpeedResult& result);
double multiply_fraction(const SpeedResult& result, double peak_operations);

// Random prompts, a new one each time, so that nothing is cached. Requests take ids from `first_id` on.
Result<SpeedResult> measure_speed(engine::Llm& llm, const SpeedOptions& options, uint64_t first_id);

}  // namespace tercet::bench
