// EngineHost: the thread that owns a generator. Requests and aborts come in through a queue and are handed
// over between two steps; what a step committed goes out to each request's sink.
//
// Every method may be called from any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/generator.h"
#include "server/metrics.h"

namespace tercet::server {

// Called on the engine's thread, which it must not hold up: with the events of one request in one step, the
// last of which has `finish`; or once with the reason why the request was refused.
using Sink = std::function<void(Result<std::vector<core::TokenEvent>>)>;

struct Submission {
  core::Request request;
  Sink sink;
};

class EngineHost {
 public:
  // `generator` and `metrics` outlive the host; nobody else uses the generator meanwhile.
  EngineHost(core::Generator& generator, Metrics& metrics);
  ~EngineHost();

  // Queues requests, whose ids the host chooses and returns. All are handed over before the same step: one
  // that is refused is told so before the others' first events. After drain() every sink is told kCancelled.
  std::vector<uint64_t> submit(std::vector<Submission> submissions);
  // The request's last event says kAborted, if it has not ended before. Takes effect before the next step.
  void abort(uint64_t id);

  // From now on requests are refused; those that were accepted go on.
  void drain();
  bool draining() const;
  // No request waits or runs.
  bool idle() const;
  // Aborts what still runs, ends the thread and lets go of the sinks. The destructor does it too.
  void stop();

  core::GeneratorStats stats() const;

 private:
  using Command = Submission;  // without a sink: abort request.id
  struct Active {
    Sink sink;
    RequestTimes times;
  };

  void loop();
  void apply(Command command);
  void step();
  void fail_all(const Error& error);

  core::Generator& generator_;
  Metrics& metrics_;
  std::map<uint64_t, Active> active_;  // the thread's

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Command> commands_;
  core::GeneratorStats stats_;
  uint64_t next_id_ = 1;
  int num_unfinished_ = 0;
  bool draining_ = false;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace tercet::server
