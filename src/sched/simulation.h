// A simulator for tests: drives a Scheduler with random events from a seed and checks its invariants after
// each one.
//
// Its model is a table of slots behind the block ids: computing a position writes a hash of everything that
// the position's KV depends on (salt and tokens up to it). Before a step's rows are "computed", every slot
// that they read must hold what this sequence would have written there. A block that is freed early, shared
// wrongly or registered too soon shows as a wrong slot. Failures abort (TERCET_CHECK).
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "base/check.h"
#include "kv/kv_manager.h"
#include "sched/scheduler.h"

namespace tercet::sched {

class Simulation {
 public:
  struct Counts {
    int64_t arrivals = 0, refused = 0, finished = 0, aborted = 0, steps = 0, rows = 0, accepted_drafts = 0;
    int64_t fetches = 0, fetch_failures = 0, longest_wait = 0;  // steps from add() to the end
  };

  explicit Simulation(uint64_t seed)
      : random_(seed), groups_(make_groups()), kv_(groups_), scheduler_(make_options(seed), &kv_) {
    for (const kv::KvGroupSpec& group : groups_) {
      slots_.emplace_back(static_cast<size_t>(group.num_blocks * kv::kBlockTokens), 0);
    }
  }

  // One random event, then the checks.
  void event() {
    const int kind = below(100);
    if (kind < 60) {
      step_in_flight_ ? finish_step() : begin_step();
    } else if (kind < 66) {
      arrive();
    } else if (kind < 68) {
      abort(random_id());
    } else if (kind < 74) {
      end_transfer();
    } else if (kind < 77) {
      hold(random_id());
    } else if (kind < 82) {
      release_hold();
    } else if (kind < 85) {
      late_event();
    } else {
      propose(random_id());
    }
    check();
  }

  // Lets everything end: no request may be lost, no block may stay.
  void drain() {
    for (int steps = 0; !scheduler_.idle(); ++steps) {
      TERCET_CHECK(steps < 200'000);
      step_in_flight_ ? finish_step() : begin_step();
      end_transfer();
      release_hold();
      check();
    }
    TERCET_CHECK(live_.empty());
    for (size_t g = 0; g < groups_.size(); ++g) TERCET_CHECK(kv_.pool(static_cast<int>(g)).num_used() == 0);
  }

  const Counts& counts() const { return counts_; }
  SchedulerStats stats() const { return scheduler_.stats(); }

 private:
  struct Live {
    int32_t salt = 0;
    size_t prompt_size = 0;
    int max_new_tokens = 0;
    std::vector<int32_t> answer_prefix;  // prompt, then the tokens that the model will generate
    std::vector<uint64_t> expected;      // [positions] the slot contents
    int64_t added_at_step = 0;
  };
  struct Transfer {
    KvRequest request;
    Live sequence;
  };
  // A sequence whose blocks are being sent: what its table said when it last ran.
  struct Sending {
    std::vector<kv::BlockId> table;
    std::vector<uint64_t> contents;
  };

  int below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }

  static uint64_t mix(uint64_t a, uint64_t b) {
    uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 29)) * 0x94d049bb133111ebu;
    return (x ^ (x >> 32)) | 1;  // never 0, which is a zeroed slot
  }

  std::vector<kv::KvGroupSpec> make_groups() {
    return {{kv::GroupKind::kFull, 0, 16 + below(40), {}},
            {kv::GroupKind::kSlidingWindow, 24, 10 + below(24), {}}};
  }

  SchedulerOptions make_options(uint64_t seed) {
    SchedulerOptions options;
    options.policy = static_cast<Policy>(seed % 3);
    options.max_queue = 20;
    options.max_sequences = 3 + below(6);
    options.decode_budget = options.max_sequences + below(16);
    options.token_budget = options.decode_budget + 1 + below(48);
    options.prefill_budget = 8 + below(60);
    options.max_drafts = below(5);
    options.min_remote_tokens = 20;
    options.min_shared_tokens = 1 + below(100);
    options.decode_reserve = below(2) == 0 ? below(40) : below(4);
    options.max_skips = below(10);
    options.max_passed = below(8);
    options.max_wait = 20'000 + below(400'000);
    return options;
  }

  // Mostly a live one, sometimes one that has ended, was refused or is yet to come.
  SequenceId random_id() {
    if (live_.empty() || below(4) == 0)
      return static_cast<SequenceId>(2 + std::max<int64_t>(0, counts_.arrivals - below(40)));
    return std::next(live_.begin(), below(static_cast<int>(live_.size())))->first;
  }

  void arrive() {
    const auto id = static_cast<SequenceId>(++counts_.arrivals);
    SequenceInfo info;
    info.id = id;
    Live live;
    live.salt = below(2);
    live.added_at_step = counts_.steps;
    const int family = below(4);
    const int shared = below(8) * 24, own = below(10) == 0 ? below(500) : 1 + below(60);
    for (int i = 0; i < shared; ++i) info.prompt.push_back(static_cast<int32_t>(mix(family, i) % 1000));
    for (int i = 0; i < own; ++i) info.prompt.push_back(static_cast<int32_t>(mix(1000 + id, i) % 1000));
    info.max_new_tokens = below(10) == 0 ? below(300) : below(60);
    info.priority = below(3);
    info.salt[0] = static_cast<uint8_t>(live.salt);
    info.remote_kv = below(5) == 0;
    info.want_all_rows = below(20) == 0;
    live.prompt_size = info.prompt.size();
    live.max_new_tokens = info.max_new_tokens;
    live.answer_prefix = info.prompt;
    for (int i = 0; i < info.max_new_tokens; ++i) {
      live.answer_prefix.push_back(static_cast<int32_t>(mix(id, i) % 1000));
    }
    live.expected = slot_contents(live.salt, live.answer_prefix);
    if (scheduler_.add(std::move(info), now_).ok()) {
      live_.emplace(id, std::move(live));
    } else {
      ++counts_.refused;
    }
  }

  static std::vector<uint64_t> slot_contents(int32_t salt, const std::vector<int32_t>& tokens) {
    std::vector<uint64_t> contents;
    uint64_t hash = static_cast<uint64_t>(salt) + 77;
    for (const int32_t token : tokens) contents.push_back(hash = mix(hash, static_cast<uint64_t>(token)));
    return contents;
  }

  uint64_t& slot(size_t group, kv::BlockId block, int position) {
    return slots_[group][static_cast<size_t>(block * kv::kBlockTokens + position % kv::kBlockTokens)];
  }

  void begin_step() {
    now_ += 1000;
    plan_ = scheduler_.schedule(now_);
    TERCET_CHECK(plan_.batch.check(groups_).empty());
    step_in_flight_ = !plan_.sequences.empty();
    ++counts_.steps;
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (const kv::BlockId id : plan_.batch.groups[g].blocks_to_zero) {
        for (int i = 0; i < kv::kBlockTokens; ++i) slot(g, id, i) = 0;
      }
    }
    for (const SequenceId id : plan_.preempted) sending_.erase(id);
    for (KvRequest& request : plan_.kv_requests) {
      ++counts_.fetches;
      const SequenceId id = request.id;
      transfers_.emplace(id, Transfer{std::move(request), live_.at(id)});
    }
    // Nobody waits for ever: something happens unless everything waits for a transfer.
    const bool waits_for_others = !transfers_.empty() || !held_.empty();
    TERCET_CHECK(step_in_flight_ || waits_for_others || !plan_.kv_requests.empty() || live_.empty());
    for (int s = 0; s < plan_.batch.num_sequences(); ++s) check_reads(s);
  }

  void check_reads(int s) {
    const PlannedSequence& planned = plan_.sequences[static_cast<size_t>(s)];
    const Live& live = live_.at(planned.id);
    for (size_t g = 0; g < groups_.size(); ++g) {
      const auto table = plan_.batch.table(static_cast<int>(g), s);
      for (int p = kv::first_position_read(groups_[g], planned.first_position); p < planned.first_position;
           ++p) {
        TERCET_CHECK(slot(g, table[static_cast<size_t>(p / kv::kBlockTokens)], p) ==
                     live.expected[static_cast<size_t>(p)]);
      }
    }
    for (int i = 0; i < planned.num_tokens; ++i) {
      TERCET_CHECK(plan_.batch.tokens[static_cast<size_t>(planned.first_row + i)] ==
                   live.answer_prefix[static_cast<size_t>(planned.first_position + i)]);
    }
    if (held_.contains(planned.id)) {
      const auto table = plan_.batch.table(0, s);
      sending_[planned.id] = {{table.begin(), table.end()},
                              {live.expected.begin(), live.expected.begin() + planned.first_position}};
    }
  }

  // The rows are written only now, however many events came in between.
  void finish_step() {
    step_in_flight_ = false;
    std::vector<SequenceResult> results;
    for (int s = 0; s < plan_.batch.num_sequences(); ++s) {
      const PlannedSequence& planned = plan_.sequences[static_cast<size_t>(s)];
      const bool skipped = below(50) == 0;  // the step stopped before this sequence
      SequenceResult result = skipped ? SequenceResult() : result_of(planned);
      write_rows(s, result.num_computed);
      if (skipped) continue;
      results.push_back(std::move(result));
      if (below(50) == 0) results.push_back(results.back());  // reported twice
    }
    std::shuffle(results.begin(), results.end(), random_);
    scheduler_.commit(results);
    for (const SequenceResult& result : results) {
      const auto live = live_.find(result.id);
      if (live == live_.end()) continue;
      const State state = scheduler_.state(result.id);
      if (state == State::kFinished || state == State::kDraining) {
        ++counts_.finished;
        end_live(live);
      }
    }
  }

  // Of rows that the step did not get to, the slots hold rubbish.
  void write_rows(int s, int num_computed) {
    const kv::SequenceRows& rows = plan_.batch.sequences[static_cast<size_t>(s)];
    const auto live = live_.find(plan_.sequences[static_cast<size_t>(s)].id);
    for (size_t g = 0; g < groups_.size(); ++g) {
      const auto table = plan_.batch.table(static_cast<int>(g), s);
      for (int p = rows.context_len; p < rows.context_len + rows.num_rows; ++p) {
        const kv::BlockId block = table[static_cast<size_t>(p / kv::kBlockTokens)];
        TERCET_CHECK(kv_.pool(static_cast<int>(g)).refcount(block) == 1);
        // An aborted sequence's rows are written too; and a rejected draft leaves rubbish.
        const bool computed = live != live_.end() && p < rows.context_len + num_computed;
        slot(g, block, p) = computed ? row_contents(live->second, s, p) : 2;
      }
    }
  }

  uint64_t row_contents(const Live& live, int s, int position) const {
    const kv::SequenceRows& rows = plan_.batch.sequences[static_cast<size_t>(s)];
    for (int p = rows.context_len; p <= position; ++p) {
      const int32_t token = plan_.batch.tokens[static_cast<size_t>(rows.first_row + p - rows.context_len)];
      if (token != live.answer_prefix[static_cast<size_t>(p)]) return 4;
    }
    return live.expected[static_cast<size_t>(position)];
  }

  SequenceResult result_of(const PlannedSequence& planned) {
    SequenceResult result;
    result.id = planned.id;
    result.num_computed = below(30) == 0 ? below(planned.num_tokens) : planned.num_tokens;
    const auto live = live_.find(planned.id);
    if (live == live_.end() || result.num_computed < planned.num_tokens || !planned.samples) return result;
    const auto& answer = live->second.answer_prefix;
    auto next = static_cast<size_t>(planned.first_position + planned.num_tokens);
    for (int d = 0; d < planned.num_drafts; ++d, ++next) {
      const auto row = static_cast<size_t>(planned.first_row + planned.num_tokens + d);
      if (plan_.batch.tokens[row] != answer[next]) break;
      result.new_tokens.push_back(answer[next]);
      ++result.num_computed;
      ++counts_.accepted_drafts;
    }
    TERCET_CHECK(next < answer.size());
    result.new_tokens.push_back(answer[next]);
    result.finished = below(100) == 0;  // an end token
    return result;
  }

  void propose(SequenceId id) {
    const auto live = live_.find(id);
    const size_t known = scheduler_.tokens(id).size();
    if (live == live_.end() || known == 0) return;
    std::vector<int32_t> drafts;
    for (size_t i = known; i < live->second.answer_prefix.size() && drafts.size() < 6; ++i) {
      drafts.push_back(below(4) == 0 ? 5000 : live->second.answer_prefix[i]);
    }
    scheduler_.propose(id, std::move(drafts));
  }

  void abort(SequenceId id) {
    scheduler_.abort(id);
    scheduler_.abort(id);
    const auto live = live_.find(id);
    if (live == live_.end()) return;
    ++counts_.aborted;
    if (!step_in_flight_ && !transfers_.contains(id) && !held_.contains(id)) {
      TERCET_CHECK(scheduler_.state(id) == State::kFinished);
    }
    end_live(live);
  }

  void end_live(std::map<SequenceId, Live>::iterator live) {
    const int64_t wait = counts_.steps - live->second.added_at_step;
    counts_.longest_wait = std::max(counts_.longest_wait, wait);
    ended_.insert(live->first);
    live_.erase(live);
  }

  // The oldest transfer writes its blocks and arrives, or fails having written some.
  void end_transfer() {
    if (transfers_.empty()) return;
    const auto transfer = transfers_.begin();
    const auto& [id, value] = *transfer;
    const KvRequest& request = value.request;
    const bool fails = below(4) == 0;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const int end =
          request.first_position + request.num_positions - (fails ? below(request.num_positions) : 0);
      for (int p = request.first_position; p < end; ++p) {
        const kv::BlockId block = request.tables[g][static_cast<size_t>(p / kv::kBlockTokens)];
        if (block == kv::kNoBlock) continue;
        TERCET_CHECK(kv_.pool(static_cast<int>(g)).refcount(block) == 1);
        slot(g, block, p) = value.sequence.expected[static_cast<size_t>(p)];
      }
    }
    const auto live = live_.find(id);
    if (fails) {
      ++counts_.fetch_failures;
      scheduler_.on_kv_failed(id);
    } else {
      const auto first =
          value.sequence.answer_prefix.begin() + static_cast<int64_t>(value.sequence.prompt_size);
      const bool sampled = value.sequence.max_new_tokens > 0 && below(4) > 0;
      scheduler_.on_kv_arrived(id, std::vector<int32_t>(first, first + (sampled ? 1 : 0)));
    }
    const State state = scheduler_.state(id);
    if (live != live_.end() && (state == State::kFinished || state == State::kDraining)) {
      ++counts_.finished;
      end_live(live);
    }
    transfers_.erase(transfer);
  }

  void hold(SequenceId id) {
    if (held_.size() >= 3 || !live_.contains(id)) return;
    scheduler_.hold(id);
    held_.insert(id);
  }

  void release_hold() {
    if (held_.empty()) return;
    const SequenceId id = *held_.begin();
    if (const auto sent = sending_.find(id);
        sent != sending_.end() && scheduler_.state(id) != State::kFinished) {
      for (size_t p = 0; p < sent->second.contents.size(); ++p) {
        const kv::BlockId block = sent->second.table[p / kv::kBlockTokens];
        TERCET_CHECK(slot(0, block, static_cast<int>(p)) == sent->second.contents[p]);
      }
    }
    sending_.erase(id);
    held_.erase(id);
    scheduler_.release_hold(id);
  }

  // Events that come when they make no sense (any more).
  void late_event() {
    const SequenceId id = random_id();
    if (!transfers_.contains(id)) {
      scheduler_.on_kv_failed(id);
      scheduler_.on_kv_arrived(id, std::vector<int32_t>{9999});
    }
    if (!held_.contains(id)) scheduler_.release_hold(id);
    const SequenceResult late{id, 1, {9999}, true};
    if (!step_in_flight_) scheduler_.commit({&late, 1});
    if (!live_.contains(id)) scheduler_.hold(id + 1'000'000'000);
  }

  void check() {
    scheduler_.check_consistency();
    for (const auto& [id, live] : live_) {
      const State state = scheduler_.state(id);
      TERCET_CHECK(state != State::kFinished && state != State::kDraining);  // no request is lost
      TERCET_CHECK((state == State::kWaitingForKv) == transfers_.contains(id));
      const auto tokens = scheduler_.tokens(id);
      TERCET_CHECK(std::equal(tokens.begin(), tokens.end(), live.answer_prefix.begin()));
      TERCET_CHECK(counts_.steps - live.added_at_step < kLongestWait);  // no request starves
    }
    for (auto id = ended_.begin(); id != ended_.end();) {
      const bool gone = scheduler_.state(*id) == State::kFinished;
      TERCET_CHECK(gone || scheduler_.state(*id) == State::kDraining);
      id = gone ? ended_.erase(id) : std::next(id);
    }
  }

  // Steps. With at most 20 waiting and 8 resident, a thousand are usual.
  static constexpr int64_t kLongestWait = 10'000;

  std::mt19937_64 random_;
  std::vector<kv::KvGroupSpec> groups_;
  kv::KvManager kv_;
  Scheduler scheduler_;
  std::vector<std::vector<uint64_t>> slots_;  // [groups][blocks * 16]
  std::map<SequenceId, Live> live_;
  std::set<SequenceId> ended_;  // and perhaps still draining
  std::map<SequenceId, Transfer> transfers_;
  std::set<SequenceId> held_;
  std::map<SequenceId, Sending> sending_;
  StepPlan plan_;
  bool step_in_flight_ = false;
  Microseconds now_ = 0;
  Counts counts_;
};

}  // namespace tercet::sched
