#include "bench/replay.h"

#include <algorithm>
#include <map>

namespace tercet::bench {
namespace {

sched::Microseconds microseconds(double seconds) { return static_cast<sched::Microseconds>(seconds * 1e6); }

class Replay {
 public:
  Replay(const Trace& trace, const ReplayOptions& options)
      : trace_(trace),
        options_(options),
        kv_({{kv::GroupKind::kFull, 0, kv::blocks_for_tokens(options.num_kv_tokens), {}}},
            options.prefix_caching),
        scheduler_(options.scheduler, &kv_) {}

  ReplayResult run();

 private:
  struct Times {
    double arrival = 0, first_row = -1, first_token = -1;
  };

  void arrive();
  void step();
  void end(size_t index);

  const Trace& trace_;
  const ReplayOptions& options_;
  kv::KvManager kv_;
  sched::Scheduler scheduler_;
  double now_ = 0;
  size_t next_ = 0;               // the request that arrives next
  std::map<size_t, Times> open_;  // by the index of the request
  std::vector<double> queueing_, first_token_, whole_;
  ReplayResult result_;
};

void Replay::arrive() {
  for (; next_ < trace_.requests.size() && trace_.requests[next_].start <= now_; ++next_) {
    const TraceRequest& request = trace_.requests[next_];
    sched::SequenceInfo info;
    info.id = next_;
    info.prompt = trace_prompt(trace_, next_);
    info.max_new_tokens = request.new_tokens;
    const Status added = scheduler_.add(std::move(info), microseconds(request.start));
    if (added.ok()) {
      open_.emplace(next_, Times{request.start, -1, -1});
    } else {
      ++(added.error().code == ErrorCode::kExhausted ? result_.num_refused : result_.num_never_fit);
    }
  }
}

void Replay::step() {
  const sched::StepPlan plan = scheduler_.schedule(microseconds(now_));
  const double begin = now_;
  now_ += options_.step_seconds + plan.batch.num_rows() / options_.rows_per_second;
  ++result_.num_steps;
  result_.num_rows += plan.batch.num_rows();
  result_.num_sequences += plan.batch.num_sequences();
  result_.peak_kv_usage =
      std::max(result_.peak_kv_usage, static_cast<double>(kv_.pool(0).num_used()) / kv_.pool(0).num_blocks());
  std::vector<sched::SequenceResult> results;
  for (const sched::PlannedSequence& planned : plan.sequences) {
    Times& times = open_.at(planned.id);
    if (times.first_row < 0) times.first_row = begin;
    sched::SequenceResult done{planned.id, planned.num_tokens, {}, false};
    if (planned.samples) {
      done.new_tokens = {kFirstToken};
      if (times.first_token < 0) times.first_token = now_;
    }
    results.push_back(std::move(done));
  }
  scheduler_.commit(results);
  for (const sched::PlannedSequence& planned : plan.sequences) {
    if (scheduler_.state(planned.id) == sched::State::kFinished) end(planned.id);
  }
}

void Replay::end(size_t index) {
  const Times& times = open_.at(index);
  queueing_.push_back(times.first_row - times.arrival);
  first_token_.push_back((times.first_token < 0 ? now_ : times.first_token) - times.arrival);
  whole_.push_back(now_ - times.arrival);
  open_.erase(index);
}

ReplayResult Replay::run() {
  while (next_ < trace_.requests.size() || !scheduler_.idle()) {
    if (scheduler_.idle()) now_ = std::max(now_, trace_.requests[next_].start);
    arrive();
    if (!scheduler_.idle()) step();
  }
  result_.seconds = now_;
  result_.stats = scheduler_.stats();
  result_.queueing = quantiles(std::move(queueing_));
  result_.first_token = quantiles(std::move(first_token_));
  result_.whole = quantiles(std::move(whole_));
  return result_;
}

}  // namespace

ReplayResult replay(const Trace& trace, const ReplayOptions& options) { return Replay(trace, options).run(); }

}  // namespace tercet::bench
