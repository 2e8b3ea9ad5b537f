#include "sched/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/check.h"

namespace tercet::sched {

const char* state_name(State state) {
  switch (state) {
    case State::kWaiting: return "waiting";
    case State::kWaitingForKv: return "waiting for KV";
    case State::kRunning: return "running";
    case State::kPreempted: return "preempted";
    case State::kDraining: return "draining";
    case State::kFinished: return "finished";
  }
  return "unknown";
}

Status check_options(const SchedulerOptions& options) {
  const auto invalid = [](std::string message) {
    return Error{ErrorCode::kInvalidArgument, std::move(message), ""};
  };
  if (std::min({options.max_queue, options.max_sequences, options.prefill_budget,
                options.min_shared_tokens}) < 1) {
    return invalid(fmt::format(
        "max_queue {}, max_sequences {}, prefill_budget {} and min_shared_tokens {} must be at least 1",
        options.max_queue, options.max_sequences, options.prefill_budget, options.min_shared_tokens));
  }
  if (std::min({options.max_drafts, options.min_remote_tokens, options.decode_reserve, options.max_skips,
                options.max_passed}) < 0 ||
      options.max_wait < 0) {
    return invalid(
        "max_drafts, min_remote_tokens, decode_reserve, max_skips, max_passed and max_wait must not be "
        "negative");
  }
  if (options.decode_budget < options.max_sequences) {
    return invalid(
        fmt::format("decode_budget {} is below max_sequences {}: not every sequence could decode in a step",
                    options.decode_budget, options.max_sequences));
  }
  if (options.token_budget <= options.decode_budget) {
    return invalid(
        fmt::format("token_budget {} must exceed decode_budget {}: decodes would leave prefill no row",
                    options.token_budget, options.decode_budget));
  }
  if (options.max_wanted_rows <= options.decode_budget) {
    return invalid(
        fmt::format("max_wanted_rows {} must exceed decode_budget {}: decodes would leave scoring no row",
                    options.max_wanted_rows, options.decode_budget));
  }
  return {};
}

Scheduler::Scheduler(SchedulerOptions options, kv::KvManager* kv) : options_(options), kv_(*kv) {
  TERCET_CHECK(check_options(options).ok());
}

StepPlan Scheduler::schedule(Microseconds now) {
  TERCET_CHECK(!step_in_flight_);
  StepPlan plan;
  plan.batch.groups.resize(kv_.groups().size(), {.blocks = {}, .starts = {0}, .blocks_to_zero = {}});
  plan_decodes(plan);
  int budget = std::min(options_.prefill_budget, options_.token_budget - plan.batch.num_rows());
  plan_prefills(plan, budget);
  if (plan.preempted.empty()) admit_waiting(plan, budget, now);
  auto blocks_to_zero = kv_.take_blocks_to_zero();
  for (size_t g = 0; g < blocks_to_zero.size(); ++g)
    plan.batch.groups[g].blocks_to_zero = std::move(blocks_to_zero[g]);
  step_in_flight_ = !plan.sequences.empty();
  return plan;
}

// Every decode gets a row; drafts share the rest of the budget, and blocks that nobody has to give up.
void Scheduler::plan_decodes(StepPlan& plan) {
  const std::vector<Sequence*> decodes = ranked(&Sequence::decodes);
  int spare_rows = options_.decode_budget - static_cast<int>(decodes.size());
  for (Sequence* sequence : decodes) {
    if (!sequence->decodes()) continue;  // preempted by one before it
    const int room = std::min(spare_rows, sequence->max_positions() - sequence->num_tokens());
    int num_drafts = std::min({static_cast<int>(sequence->drafts.size()), options_.max_drafts, room});
    if (num_drafts > 0 && !kv_.reserve(sequence->kv, 1 + num_drafts)) num_drafts = 0;
    if (num_drafts == 0 && !reserve_or_preempt(*sequence, 1, plan)) continue;
    spare_rows -= num_drafts;
    plan_rows(*sequence, 1, num_drafts, plan);
  }
}

void Scheduler::plan_prefills(StepPlan& plan, int& budget) {
  for (Sequence* sequence : ranked(&Sequence::prefills)) {
    if (sequence->prefills()) plan_prefill(*sequence, plan, budget);
  }
}

void Scheduler::plan_prefill(Sequence& sequence, StepPlan& plan, int& budget) {
  int chunk = std::min(sequence.num_uncomputed(), budget);
  if (sequence.wants_all()) {
    const int num_wanted = static_cast<int>(plan.batch.wanted_rows.size());
    chunk = std::min(chunk, std::max(0, options_.max_wanted_rows - num_wanted));
  }
  if (chunk == 0 || !reserve_or_preempt(sequence, chunk, plan)) return;
  budget -= chunk;
  plan_rows(sequence, chunk, 0, plan);
}

// Best rank first. One that does not fit lets a few others pass, and nobody once it has aged. One that waits
// for a prefix loses nothing to those that pass it.
void Scheduler::admit_waiting(StepPlan& plan, int& budget, Microseconds now) {
  for (auto& [id, sequence] : sequences_) {
    if (sequence.waits() && now - sequence.arrival_time >= options_.max_wait) sequence.aged = true;
  }
  int num_resident = count(&Sequence::resident);
  std::vector<int> room = room_beyond_growth();
  std::vector<Sequence*> passed;
  int num_behind = 0;  // a prefix
  for (Sequence* sequence : ranked(&Sequence::waits)) {
    if (budget == 0 || num_resident == options_.max_sequences) return;
    switch (try_admit(*sequence, room, plan, budget)) {
      case Admission::kAdmitted:
        ++num_resident;
        room = room_beyond_growth();
        for (Sequence* other : passed) ++other->num_skips;
        break;
      case Admission::kDoesNotFit: passed.push_back(sequence); break;
      case Admission::kWaitsForPrefix: ++num_behind; break;
    }
    for (Sequence* other : passed) other->aged |= other->num_skips >= options_.max_skips;
    if (std::any_of(passed.begin(), passed.end(), [](const Sequence* other) { return other->aged; })) return;
    if (static_cast<int>(passed.size()) + num_behind > options_.max_passed) return;
  }
}

// `room`: room_beyond_growth().
Scheduler::Admission Scheduler::try_admit(Sequence& sequence, std::span<const int> room, StepPlan& plan,
                                          int& budget) {
  // Rows whose logits are wanted and not yet delivered are computed even if their KV is cached.
  const int reusable = std::min(sequence.info.want_all_rows ? sequence.num_delivered : sequence.num_tokens(),
                                sequence.num_tokens() - 1);
  const kv::PrefixMatch match = kv_.match(sequence.kv, sequence.tokens, reusable);
  if (another_computes(sequence, match.num_tokens, reusable)) return Admission::kWaitsForPrefix;
  const std::vector<int> cost =
      kv_.admission_cost(match, growth_target(sequence), largest_chunk(sequence, match.num_tokens));
  if (!std::equal(cost.begin(), cost.end(), room.begin(), std::less_equal<>())) return Admission::kDoesNotFit;
  kv_.admit(sequence.kv, match);
  sequence.state = State::kRunning;
  if (sequence.num_cached < 0) {
    sequence.num_cached = match.num_tokens;
    totals_.num_prompt_tokens += sequence.num_tokens();
    totals_.num_cached_tokens += match.num_tokens;
  }
  // Asked for once: after a failure or a preemption the sequence is computed here.
  const bool remote = std::exchange(sequence.info.remote_kv, false);
  if (remote && sequence.num_uncomputed() >= options_.min_remote_tokens) {
    request_kv(sequence, plan);
  } else {
    plan_prefill(sequence, plan, budget);
  }
  return Admission::kAdmitted;
}

// Whether a running sequence is about to compute enough of the positions [begin, end) for this one too. Only
// those of better rank count, which nothing that waits keeps from going on, and none for an aged one.
bool Scheduler::another_computes(const Sequence& sequence, int begin, int end) const {
  if (sequence.aged) return false;
  return std::any_of(sequences_.begin(), sequences_.end(), [&](const auto& entry) {
    const Sequence& other = entry.second;
    if (!other.prefills() || rank(other) > rank(sequence)) return false;
    const int num_shared = std::min(kv::num_shared_tokens(other.kv, sequence.kv), end);
    return num_shared > other.kv.num_committed && num_shared - begin >= options_.min_shared_tokens;
  });
}

void Scheduler::request_kv(Sequence& sequence, StepPlan& plan) {
  const int num_positions = sequence.num_uncomputed();
  if (!kv_.reserve_arriving(sequence.kv, num_positions)) return;  // it prefills here, when there is room
  sequence.state = State::kWaitingForKv;
  sequence.awaits_kv = true;
  plan.kv_requests.push_back(
      {sequence.info.id, sequence.kv.num_committed, num_positions, sequence.kv.tables});
}

// Room for a step's new positions, if need be at the cost of sequences of worse rank that this step has not
// planned.
bool Scheduler::reserve_or_preempt(Sequence& sequence, int num_new, StepPlan& plan) {
  while (!kv_.reserve(sequence.kv, num_new)) {
    Sequence* victim = find_victim(sequence);
    if (victim == nullptr) return false;
    preempt(*victim, plan);
  }
  return true;
}

Scheduler::Sequence* Scheduler::find_victim(const Sequence& for_whom) {
  Sequence* victim = nullptr;
  for (auto& [id, sequence] : sequences_) {
    if (sequence.state != State::kRunning || sequence.blocks_in_use()) continue;
    if (rank(sequence) > rank(victim == nullptr ? for_whom : *victim)) victim = &sequence;
  }
  return victim;
}

void Scheduler::preempt(Sequence& sequence, StepPlan& plan) {
  kv_.release(sequence.kv);
  sequence.state = State::kPreempted;
  sequence.drafts.clear();
  ++sequence.num_preemptions;
  ++totals_.num_preemptions;
  plan.preempted.push_back(sequence.info.id);
}

void Scheduler::plan_rows(Sequence& sequence, int num_tokens, int num_drafts, StepPlan& plan) {
  kv::StepBatch& batch = plan.batch;
  const int first = sequence.kv.num_committed;
  const int first_row = batch.num_rows();
  const bool samples = sequence.info.max_new_tokens > 0 && first + num_tokens == sequence.num_tokens();
  for (int position = first; position < first + num_tokens + num_drafts; ++position) {
    const int draft = position - sequence.num_tokens();
    const bool last_or_draft = draft >= -1;
    if (last_or_draft || (sequence.info.want_all_rows && position >= sequence.num_delivered)) {
      batch.wanted_rows.push_back(batch.num_rows());
    }
    batch.tokens.push_back(draft >= 0 ? sequence.drafts[static_cast<size_t>(draft)]
                                      : sequence.tokens[static_cast<size_t>(position)]);
    batch.positions.push_back(position);
  }
  batch.sequences.push_back(
      {first_row, num_tokens + num_drafts, first, sequence.info.adapter, sequence.info.rope_variant});
  for (size_t g = 0; g < batch.groups.size(); ++g) {
    const std::vector<kv::BlockId>& table = sequence.kv.tables[g];
    kv::GroupTables& tables = batch.groups[g];
    tables.blocks.insert(tables.blocks.end(), table.begin(), table.end());
    tables.starts.push_back(static_cast<int32_t>(tables.blocks.size()));
  }
  sequence.num_planned_rows = num_tokens + num_drafts;
  plan.sequences.push_back(
      {sequence.info.id, first, num_tokens, num_drafts, first_row, sequence.num_cached, samples});
}

void Scheduler::commit(std::span<const SequenceResult> results) {
  step_in_flight_ = false;
  for (const SequenceResult& result : results) {
    Sequence* sequence = find(result.id);
    if (sequence != nullptr && sequence->num_planned_rows > 0) apply(*sequence, result);
  }
  for (auto next = sequences_.begin(); next != sequences_.end();) {
    Sequence& sequence = (next++)->second;  // apply() may erase it
    if (sequence.num_planned_rows > 0) apply(sequence, {});
  }
}

void Scheduler::apply(Sequence& sequence, const SequenceResult& result) {
  const int num_planned_rows = std::exchange(sequence.num_planned_rows, 0);
  sequence.drafts.clear();
  if (sequence.state == State::kDraining) return end(sequence);
  TERCET_CHECK(result.num_computed >= 0 && result.num_computed <= num_planned_rows);
  TERCET_CHECK(result.new_tokens.empty() || result.num_computed >= sequence.num_uncomputed());
  sequence.tokens.insert(sequence.tokens.end(), result.new_tokens.begin(), result.new_tokens.end());
  kv_.commit(sequence.kv, sequence.tokens, result.num_computed);
  sequence.num_delivered = std::max(sequence.num_delivered, sequence.kv.num_committed);
  if (result.finished || sequence.complete()) return end(sequence);
  TERCET_CHECK(sequence.num_uncomputed() > 0);
}

Status Scheduler::add(SequenceInfo info, Microseconds now) {
  if (sequences_.contains(info.id)) return {};
  const auto prompt_size = static_cast<int64_t>(info.prompt.size());
  constexpr int64_t kMaxPositions = 1 << 30;
  if (prompt_size < 1 || info.max_new_tokens < 0 || prompt_size + info.max_new_tokens > kMaxPositions) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("a prompt of {} tokens and {} new ones: expected at least 1 and 0, at most {} together",
                    prompt_size, info.max_new_tokens, kMaxPositions),
        ""};
  }
  Sequence sequence;
  sequence.info = std::move(info);
  sequence.tokens = sequence.info.prompt;
  const int num_positions = sequence.max_positions();
  const int chunk = std::max(std::min(num_positions, options_.prefill_budget), 1 + options_.max_drafts);
  if (!kv_.fits_alone(num_positions, chunk)) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("the prompt's {} tokens and {} new ones need more KV blocks than the whole pool has: "
                    "shorten the prompt, lower max_tokens or give the KV cache more memory",
                    prompt_size, sequence.info.max_new_tokens),
        ""};
  }
  const auto queued = [](const auto& entry) { return entry.second.state == State::kWaiting; };
  if (std::count_if(sequences_.begin(), sequences_.end(), queued) >= options_.max_queue) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("the queue is full ({} requests wait): try later", options_.max_queue), ""};
  }
  sequence.kv = kv::KvSequence(sequence.info.salt);
  sequence.arrival = num_arrivals_++;
  sequence.arrival_time = now;
  const SequenceId id = sequence.info.id;
  sequences_.emplace(id, std::move(sequence));
  return {};
}

void Scheduler::abort(SequenceId id) {
  if (Sequence* sequence = find(id)) end(*sequence);
}

// Finished, and forgotten, once nothing uses the blocks any more; Draining until then.
void Scheduler::end(Sequence& sequence) {
  sequence.state = State::kDraining;
  if (sequence.blocks_in_use()) return;
  kv_.release(sequence.kv);
  sequences_.erase(sequence.info.id);
}

void Scheduler::on_kv_arrived(SequenceId id, std::span<const int32_t> new_tokens) {
  Sequence* sequence = find(id);
  if (sequence == nullptr || !std::exchange(sequence->awaits_kv, false)) return;
  if (sequence->state == State::kDraining) return end(*sequence);
  sequence->state = State::kRunning;
  sequence->tokens.insert(sequence->tokens.end(), new_tokens.begin(), new_tokens.end());
  kv_.commit(sequence->kv, sequence->tokens, sequence->kv.num_reserved - sequence->kv.num_committed);
  sequence->num_delivered = sequence->kv.num_committed;
  if (sequence->complete()) return end(*sequence);
  // Without a sampled token the last row is computed again, for its logits.
  if (sequence->num_uncomputed() == 0) kv_.rewind(sequence->kv, sequence->num_tokens() - 1);
}

void Scheduler::on_kv_failed(SequenceId id) {
  Sequence* sequence = find(id);
  if (sequence == nullptr || !std::exchange(sequence->awaits_kv, false)) return;
  if (sequence->state == State::kDraining) return end(*sequence);
  ++totals_.num_kv_failures;
  kv_.release(sequence->kv);
  sequence->state = State::kWaiting;
}

void Scheduler::hold(SequenceId id) {
  if (Sequence* sequence = find(id)) sequence->held = true;
}

void Scheduler::release_hold(SequenceId id) {
  Sequence* sequence = find(id);
  if (sequence == nullptr || !std::exchange(sequence->held, false)) return;
  if (sequence->state == State::kDraining) end(*sequence);
}

void Scheduler::propose(SequenceId id, std::vector<int32_t> drafts) {
  Sequence* sequence = find(id);
  if (sequence != nullptr && sequence->decodes() && sequence->num_planned_rows == 0) {
    sequence->drafts = std::move(drafts);
  }
}

Scheduler::Rank Scheduler::rank(const Sequence& sequence) const {
  if (sequence.aged) return {0, 0, sequence.arrival};
  switch (options_.policy) {
    case Policy::kFcfs: break;
    case Policy::kPriority: return {1, sequence.info.priority, sequence.arrival};
    case Policy::kShortestRemaining:
      return {1, sequence.num_uncomputed() + sequence.info.max_new_tokens - sequence.num_generated(),
              sequence.arrival};
  }
  return {1, 0, sequence.arrival};
}

// How far a sequence gets on blocks that admission keeps for it. Each preemption doubles the reserve: what
// was admitted too soon once is not admitted too soon again and again.
int Scheduler::growth_target(const Sequence& sequence) const {
  const int64_t reserve = int64_t{options_.decode_reserve} << std::min(sequence.num_preemptions, 20);
  return static_cast<int>(std::min<int64_t>(sequence.num_tokens() + reserve, sequence.max_positions()));
}

int Scheduler::largest_chunk(const Sequence& sequence, int num_committed) const {
  const int chunk = std::min(sequence.num_tokens() - num_committed, options_.prefill_budget);
  return std::max(chunk, 1 + options_.max_drafts);
}

// Blocks, per group, that are left for a new sequence when all residents reach their growth targets.
std::vector<int> Scheduler::room_beyond_growth() const {
  std::vector<int> room;
  for (size_t g = 0; g < kv_.groups().size(); ++g)
    room.push_back(kv_.pool(static_cast<int>(g)).num_available());
  for (const auto& [id, sequence] : sequences_) {
    if (sequence.state != State::kRunning && sequence.state != State::kWaitingForKv) continue;
    const int chunk = largest_chunk(sequence, sequence.kv.num_committed);
    const std::vector<int> growth = kv_.growth_cost(sequence.kv, growth_target(sequence), chunk);
    for (size_t g = 0; g < room.size(); ++g) room[g] -= growth[g];
  }
  return room;
}

std::vector<Scheduler::Sequence*> Scheduler::ranked(bool (Sequence::*wanted)() const) {
  std::vector<std::pair<Rank, Sequence*>> found;
  for (auto& [id, sequence] : sequences_) {
    if ((sequence.*wanted)()) found.emplace_back(rank(sequence), &sequence);
  }
  std::sort(found.begin(), found.end());
  std::vector<Sequence*> sequences;
  for (const auto& [rank, sequence] : found) sequences.push_back(sequence);
  return sequences;
}

int Scheduler::count(bool (Sequence::*wanted)() const) const {
  return static_cast<int>(std::count_if(sequences_.begin(), sequences_.end(),
                                        [&](const auto& entry) { return (entry.second.*wanted)(); }));
}

Scheduler::Sequence* Scheduler::find(SequenceId id) {
  const auto found = sequences_.find(id);
  return found == sequences_.end() ? nullptr : &found->second;
}

State Scheduler::state(SequenceId id) const {
  const auto found = sequences_.find(id);
  return found == sequences_.end() ? State::kFinished : found->second.state;
}

std::span<const int32_t> Scheduler::tokens(SequenceId id) const {
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return {};
  return found->second.tokens;
}

SchedulerStats Scheduler::stats() const {
  SchedulerStats stats = totals_;
  for (const auto& [id, sequence] : sequences_) {
    stats.num_waiting += sequence.waits();
    stats.num_waiting_for_kv += sequence.state == State::kWaitingForKv;
    stats.num_running += sequence.state == State::kRunning;
    stats.num_draining += sequence.state == State::kDraining;
  }
  return stats;
}

void Scheduler::check_consistency() const {
  std::vector<const kv::KvSequence*> holders;
  for (const auto& [id, sequence] : sequences_) {
    holders.push_back(&sequence.kv);
    TERCET_CHECK(id == sequence.info.id && sequence.state != State::kFinished);
    TERCET_CHECK(!sequence.waits() || sequence.kv.num_reserved == 0);
    TERCET_CHECK(sequence.state != State::kRunning || sequence.num_uncomputed() > 0);
    TERCET_CHECK(sequence.state != State::kWaitingForKv || sequence.awaits_kv);
    TERCET_CHECK(sequence.state != State::kDraining || sequence.blocks_in_use());
    TERCET_CHECK(sequence.num_planned_rows == 0 || step_in_flight_);
    TERCET_CHECK(sequence.kv.num_committed + sequence.num_planned_rows <=
                 std::max(sequence.kv.num_reserved, 0));
    TERCET_CHECK(sequence.num_tokens() <=
                 static_cast<int>(sequence.info.prompt.size()) + sequence.info.max_new_tokens);
  }
  TERCET_CHECK(count(&Sequence::resident) <= options_.max_sequences);
  kv_.check_consistency(holders);
}

}  // namespace tercet::sched
