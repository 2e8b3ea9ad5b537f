// A trace through the scheduler alone: who waits how long, and what the prefix cache finds. No model runs;
// the time of a step is a formula, so that the result is the same everywhere.
#pragma once

#include "bench/load.h"
#include "bench/trace.h"
#include "sched/scheduler.h"

namespace tercet::bench {

struct ReplayOptions {
  sched::SchedulerOptions scheduler;
  int num_kv_tokens = 65'536;
  bool prefix_caching = true;
  // A step takes so long, and for each row one rows_per_second-th of a second more.
  double step_seconds = 0.02;
  double rows_per_second = 2000;
};

struct ReplayResult {
  int num_refused = 0;                                     // the queue was full
  int num_never_fit = 0;                                   // larger than the pool
  int64_t num_steps = 0, num_rows = 0, num_sequences = 0;  // sequences: summed over the steps
  double seconds = 0;                                      // until the last answer, on the replay's clock
  double peak_kv_usage = 0;                                // part of the blocks that sequences held
  sched::SchedulerStats stats;
  // Seconds from a request's arrival to its first row, its first token and its end.
  Quantiles queueing, first_token, whole;
};

// `options.scheduler` must pass check_options.
ReplayResult replay(const Trace& trace, const ReplayOptions& options);

}  // namespace tercet::bench
