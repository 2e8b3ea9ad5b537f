// Generator: what a front end (the terminal, the server) sees of an engine. An implementation may run in this
// thread, in another, or on another host.
#pragma once

#include <vector>

#include "base/result.h"
#include "core/types.h"

namespace tercet::core {

// How loaded a generator is.
struct GeneratorStats {
  int num_waiting = 0;
  int num_running = 0;
  double kv_usage = 0;            // part of the KV blocks that running requests hold
  int64_t num_preemptions = 0;    // since the start, as all below
  int64_t num_prompt_tokens = 0;  // looked up in the prefix cache
  int64_t num_cached_tokens = 0;  // and found there
};

class Generator {
 public:
  virtual ~Generator() = default;

  // Queues a request. kExhausted: the queue is full, try later. Any other error says why it can never run (a
  // prompt longer than the context, an unknown token).
  virtual Status add(Request request) = 0;
  // Ends a request early; its last event has FinishReason::kAborted. Unknown ids are ignored.
  virtual void abort(uint64_t request_id) = 0;
  // True while requests wait or run.
  virtual bool busy() const = 0;
  // Advances every running request and returns what was committed. Each request ends with one event that has
  // `finish`.
  virtual Result<std::vector<TokenEvent>> step() = 0;

  virtual GeneratorStats stats() const { return {}; }
};

}  // namespace tercet::core
