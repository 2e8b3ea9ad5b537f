// Scheduler: who runs next, with how many tokens. A deterministic state machine over lengths, token ids and a
// clock it is given. The engine's loop is
//
//   plan = scheduler.schedule(now);  run plan.batch;  scheduler.commit(results);
//
// One step is in flight between schedule() and commit(); blocks that it uses are not freed meanwhile. Every
// other call may come at any time and any number of times: events for sequences that are unknown, or past
// caring, change nothing.
//
// One owner thread. It owns the KvManager's calls. The states:
//
//   Waiting -> Running -> Finished              the usual path
//   Waiting -> WaitingForKv -> Running          its KV arrives from elsewhere; if that fails, back to Waiting
//   Running -> Preempted -> Running             its blocks went to one of better rank; its KV is recomputed
//   any -> Draining -> Finished                 it has ended; a step or a transfer still uses its blocks
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "kv/kv_manager.h"
#include "kv/step_batch.h"

namespace tercet::sched {

using SequenceId = uint64_t;
using Microseconds = int64_t;  // on the engine's monotonic clock

enum class Policy : uint8_t {
  kFcfs,               // first come, first served
  kPriority,           // lower priority value first, then first come
  kShortestRemaining,  // fewest tokens left to compute and generate first
};

enum class State : uint8_t { kWaiting, kWaitingForKv, kRunning, kPreempted, kDraining, kFinished };
const char* state_name(State state);

struct SchedulerOptions {
  Policy policy = Policy::kFcfs;
  int max_queue = 1024;       // sequences waiting, preempted ones not counted
  int max_sequences = 64;     // sequences that hold blocks, draining ones included
  int token_budget = 2048;    // rows in a step; prefill gets what decodes leave of it
  int prefill_budget = 2048;  // rows in a step for prefill
  int decode_budget = 1024;   // rows in a step for decodes with their drafts; at least max_sequences
  int max_drafts = 0;         // for one sequence in one step
  // A row of logits is large: in a step with so many wanted ones, sequences that want all of their rows get
  // no more.
  int max_wanted_rows = 1 << 30;
  int min_remote_tokens = 512;  // fewer uncached prompt tokens are computed here, remote_kv or not
  // Admission keeps room for every running sequence to generate this many tokens more (or what it has left).
  int decode_reserve = 64;
  // A waiting sequence that does not fit is passed at most max_skips times, and by nobody once it has waited
  // max_wait: it then outranks all that have not, under every policy.
  int max_skips = 16;
  int max_passed = 16;  // waiting sequences that are looked past in one step
  Microseconds max_wait = 30'000'000;
  // A sequence of better rank is computing at least so many tokens that the next one shares and the prefix
  // cache does not have yet: the next one waits for them rather than compute them too.
  int min_shared_tokens = 64;
};

// Says what is wrong with the options, if anything.
Status check_options(const SchedulerOptions& options);

struct SequenceInfo {
  SequenceId id = 0;
  std::vector<int32_t> prompt;  // at least one token
  int max_new_tokens = 0;       // 0: the prompt is computed and nothing generated
  int priority = 0;
  int adapter = 0;
  int rope_variant = 0;        // kv::SequenceRows; part of the salt
  kv::BlockHash salt = {};     // kv::make_salt
  bool remote_kv = false;      // the prompt's KV is fetched from elsewhere, if enough of it is not cached
  bool want_all_rows = false;  // logits of every prompt row: these rows are computed even if cached
};

// One sequence's part of a step. Its rows are the known tokens [first_position, first_position + num_tokens),
// then the drafts.
struct PlannedSequence {
  SequenceId id = 0;
  int first_position = 0;
  int num_tokens = 0;
  int num_drafts = 0;
  int first_row = 0;
  int num_cached = 0;    // prompt tokens that its first admission found in the prefix cache
  bool samples = false;  // the last known token is among the rows: new tokens follow
};

// The KV of positions [first_position, first_position + num_positions) is to be fetched; room is reserved in
// `tables`. The transfer must not write before plan.batch's blocks_to_zero are zeroed.
struct KvRequest {
  SequenceId id = 0;
  int first_position = 0;
  int num_positions = 0;
  std::vector<std::vector<kv::BlockId>> tables;  // [groups]
};

struct StepPlan {
  // In the order of batch.sequences. Without any there is no step, and commit() may be left out; batch's
  // blocks_to_zero count all the same.
  std::vector<PlannedSequence> sequences;
  kv::StepBatch batch;
  std::vector<KvRequest> kv_requests;
  std::vector<SequenceId> preempted;
};

// What became of one planned sequence. Rows whose KV is right: all planned known tokens (or fewer, if the
// step stopped early), and the drafts that were accepted. new_tokens are those accepted and the one sampled
// after them, empty unless it `samples` and all its known tokens were computed. A sequence ends when
// `finished`, and at the latest with its max_new_tokens-th token.
struct SequenceResult {
  SequenceId id = 0;
  int num_computed = 0;
  std::vector<int32_t> new_tokens;
  bool finished = false;
};

struct SchedulerStats {
  int num_waiting = 0;  // Waiting and Preempted
  int num_waiting_for_kv = 0;
  int num_running = 0;
  int num_draining = 0;
  int64_t num_preemptions = 0;    // since the start, as all below
  int64_t num_kv_failures = 0;    // fetches that failed and fell back to local prefill
  int64_t num_prompt_tokens = 0;  // looked up in the prefix cache by first admissions
  int64_t num_cached_tokens = 0;  // and found there
};

class Scheduler {
 public:
  // `options` must pass check_options. `kv` is the scheduler's alone and outlives it.
  Scheduler(SchedulerOptions options, kv::KvManager* kv);

  // Queues a sequence; a known id changes nothing. kExhausted: the queue is full, try later.
  // kInvalidArgument: it can never run, and why.
  Status add(SequenceInfo info, Microseconds now);
  // Ends a sequence: its blocks are free at once, or as soon as the step in flight or its transfer is over.
  void abort(SequenceId id);

  // The KV that a KvRequest asked for is there, with the tokens that its sender has sampled already.
  void on_kv_arrived(SequenceId id, std::span<const int32_t> new_tokens);
  // It will not come, and nothing writes the reserved blocks any more: the sequence computes its prompt here.
  void on_kv_failed(SequenceId id);
  // While a sequence is held (its KV is being sent elsewhere) its blocks stay, whatever becomes of it.
  void hold(SequenceId id);
  void release_hold(SequenceId id);

  // Draft tokens to verify in the next step, in place of earlier ones; the plan may take fewer, or none.
  void propose(SequenceId id, std::vector<int32_t> drafts);

  StepPlan schedule(Microseconds now);
  // Results in any order. A planned sequence without one computed nothing.
  void commit(std::span<const SequenceResult> results);

  // kFinished for every id that is not known (any more).
  State state(SequenceId id) const;
  // Prompt and generated tokens; empty for an unknown id.
  std::span<const int32_t> tokens(SequenceId id) const;
  bool idle() const { return sequences_.empty(); }
  SchedulerStats stats() const;

  // Aborts unless every invariant of scheduler and blocks holds. For tests.
  void check_consistency() const;

 private:
  struct Sequence {
    SequenceInfo info;
    State state = State::kWaiting;
    std::vector<int32_t> tokens;  // prompt, then what was generated
    std::vector<int32_t> drafts;  // proposed for the next step
    kv::KvSequence kv;
    int64_t arrival = 0;  // 0, 1, 2, ... in the order of add()
    Microseconds arrival_time = 0;
    bool aged = false;         // passed by others, or waiting, for too long
    bool awaits_kv = false;    // a transfer writes its blocks
    bool held = false;         // a transfer reads its blocks
    int num_planned_rows = 0;  // in the step in flight
    int num_skips = 0;
    int num_preemptions = 0;
    int num_cached = -1;    // prompt tokens found at its first admission; -1: not yet admitted
    int num_delivered = 0;  // positions whose rows have been computed once, here or elsewhere

    int num_tokens() const { return static_cast<int>(tokens.size()); }
    int num_uncomputed() const { return num_tokens() - kv.num_committed; }
    int num_generated() const { return static_cast<int>(tokens.size() - info.prompt.size()); }
    bool decodes() const { return state == State::kRunning && num_uncomputed() == 1; }
    bool prefills() const { return state == State::kRunning && num_uncomputed() > 1; }
    // Rows from position num_committed on are wanted, all of them.
    bool wants_all() const { return info.want_all_rows && kv.num_committed >= num_delivered; }
    bool waits() const { return state == State::kWaiting || state == State::kPreempted; }
    bool resident() const { return !waits(); }
    bool blocks_in_use() const { return kv.num_reserved > 0 && (num_planned_rows > 0 || awaits_kv || held); }
    // Positions that are ever computed: the last token of an answer is not.
    int max_positions() const {
      return static_cast<int>(info.prompt.size()) + (info.max_new_tokens > 0 ? info.max_new_tokens - 1 : 0);
    }
    bool complete() const {
      return info.max_new_tokens > 0 ? num_generated() >= info.max_new_tokens : num_uncomputed() == 0;
    }
  };
  enum class Admission : uint8_t { kAdmitted, kDoesNotFit, kWaitsForPrefix };
  // Smaller is better: aged ones first, then the policy's order, then the order of arrival.
  using Rank = std::tuple<int64_t, int64_t, int64_t>;

  void plan_decodes(StepPlan& plan);
  void plan_prefills(StepPlan& plan, int& budget);
  void admit_waiting(StepPlan& plan, int& budget, Microseconds now);
  Admission try_admit(Sequence& sequence, std::span<const int> room, StepPlan& plan, int& budget);
  bool another_computes(const Sequence& sequence, int begin, int end) const;
  void request_kv(Sequence& sequence, StepPlan& plan);
  void plan_prefill(Sequence& sequence, StepPlan& plan, int& budget);
  bool reserve_or_preempt(Sequence& sequence, int num_new, StepPlan& plan);
  Sequence* find_victim(const Sequence& for_whom);
  void preempt(Sequence& sequence, StepPlan& plan);
  void plan_rows(Sequence& sequence, int num_tokens, int num_drafts, StepPlan& plan);
  void apply(Sequence& sequence, const SequenceResult& result);
  void end(Sequence& sequence);

  std::vector<int> room_beyond_growth() const;
  int growth_target(const Sequence& sequence) const;
  int largest_chunk(const Sequence& sequence, int num_committed) const;
  Rank rank(const Sequence& sequence) const;
  std::vector<Sequence*> ranked(bool (Sequence::*wanted)() const);
  int count(bool (Sequence::*wanted)() const) const;
  Sequence* find(SequenceId id);

  SchedulerOptions options_;
  kv::KvManager& kv_;
  std::map<SequenceId, Sequence> sequences_;
  int64_t num_arrivals_ = 0;
  bool step_in_flight_ = false;
  SchedulerStats totals_;
};

}  // namespace tercet::sched
