#include "sched/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace tercet::sched {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<int32_t> counting(int n, int32_t first = 0) {
  std::vector<int32_t> tokens(static_cast<size_t>(n));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

// A scheduler over one full-attention group, with prompts that share nothing unless a test says so.
struct Fixture {
  explicit Fixture(int num_blocks, SchedulerOptions options = {})
      : Fixture(std::vector<kv::KvGroupSpec>{{kv::GroupKind::kFull, 0, num_blocks, {}}}, options) {}
  Fixture(std::vector<kv::KvGroupSpec> kv_groups, SchedulerOptions options)
      : groups(std::move(kv_groups)), kv(groups), scheduler(options, &kv) {}

  SequenceInfo info(SequenceId id, int prompt_size, int max_new_tokens) const {
    SequenceInfo info;
    info.id = id;
    info.prompt = counting(prompt_size, static_cast<int32_t>(id) * 100'000);
    info.max_new_tokens = max_new_tokens;
    return info;
  }
  void add(SequenceId id, int prompt_size, int max_new_tokens) { add(info(id, prompt_size, max_new_tokens)); }
  void add(SequenceInfo info) {
    const Status status = scheduler.add(std::move(info), now);
    EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
  }
  StepPlan schedule() {
    StepPlan plan = scheduler.schedule(now);
    scheduler.check_consistency();
    EXPECT_THAT(plan.batch.check(groups), IsEmpty());
    return plan;
  }
  // What a model without speculation does: every row is computed, and sampling sequences get one token.
  void commit(const StepPlan& plan) {
    std::vector<SequenceResult> results;
    for (const PlannedSequence& planned : plan.sequences) {
      SequenceResult result{planned.id, planned.num_tokens, {}, false};
      const auto tokens = scheduler.tokens(planned.id);
      if (planned.samples) result.new_tokens = {static_cast<int32_t>(tokens.size())};
      results.push_back(result);
    }
    scheduler.commit(results);
    scheduler.check_consistency();
  }
  StepPlan step() {
    StepPlan plan = schedule();
    commit(plan);
    now += 1000;
    return plan;
  }
  int steps_until_idle(int limit = 10'000) {
    int steps = 0;
    while (!scheduler.idle() && steps < limit) ++steps, step();
    EXPECT_TRUE(scheduler.idle());
    return steps;
  }
  int num_used() const { return kv.pool(0).num_used(); }

  std::vector<kv::KvGroupSpec> groups;
  kv::KvManager kv;
  Scheduler scheduler;
  Microseconds now = 0;
};

std::vector<SequenceId> ids(const StepPlan& plan) {
  std::vector<SequenceId> ids;
  for (const PlannedSequence& planned : plan.sequences) ids.push_back(planned.id);
  return ids;
}

SchedulerOptions small_options() {
  SchedulerOptions options;
  options.max_sequences = 4;
  options.token_budget = 40;
  options.prefill_budget = 32;
  options.decode_budget = 16;
  options.decode_reserve = 16;
  options.min_remote_tokens = 16;
  return options;
}

TEST(Scheduler, RunsARequestFromPromptToLastToken) {
  Fixture f(16);
  f.add(1, 20, 3);
  EXPECT_EQ(f.scheduler.state(1), State::kWaiting);
  StepPlan plan = f.schedule();
  ASSERT_THAT(ids(plan), ElementsAre(1));
  EXPECT_EQ(plan.sequences[0].num_tokens, 20);
  EXPECT_TRUE(plan.sequences[0].samples);
  EXPECT_THAT(plan.batch.wanted_rows, ElementsAre(19));
  EXPECT_THAT(plan.batch.groups[0].blocks_to_zero, testing::SizeIs(2));
  EXPECT_EQ(f.scheduler.state(1), State::kRunning);
  f.commit(plan);
  plan = f.step();
  EXPECT_EQ(plan.batch.tokens, std::vector<int32_t>{20});
  EXPECT_EQ(plan.batch.positions, std::vector<int32_t>{20});
  f.step();
  EXPECT_EQ(f.scheduler.state(1), State::kFinished);
  EXPECT_EQ(f.num_used(), 0);
  EXPECT_TRUE(f.step().sequences.empty());
}

TEST(Scheduler, DecodesComeFirstAndPrefillIsChunkedWithinTheBudget) {
  Fixture f(64, small_options());
  f.add(1, 8, 10);
  f.step();
  f.add(2, 70, 10);
  StepPlan plan = f.step();
  EXPECT_THAT(ids(plan), ElementsAre(1, 2));
  EXPECT_EQ(plan.sequences[1].num_tokens, 32);
  EXPECT_FALSE(plan.sequences[1].samples);
  EXPECT_THAT(plan.batch.wanted_rows, ElementsAre(0));
  f.step();
  plan = f.step();
  EXPECT_EQ(plan.sequences[1].first_position, 64);
  EXPECT_EQ(plan.sequences[1].num_tokens, 6);
  EXPECT_TRUE(plan.sequences[1].samples);
}

TEST(Scheduler, PrefillGetsWhatDecodesLeaveOfTheTokenBudget) {
  SchedulerOptions options = small_options();
  options.token_budget = 33;
  Fixture f(64, options);
  for (SequenceId id : {1, 2, 3}) f.add(id, 4, 10);
  f.step();
  f.add(4, 100, 10);
  const StepPlan plan = f.step();
  EXPECT_THAT(ids(plan), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(plan.sequences[3].num_tokens, 30);
}

TEST(Scheduler, UsesTheCachedPrefixAndReportsItsLength) {
  Fixture f(64);
  f.add(1, 40, 2);
  f.step();
  auto info = f.info(2, 40, 2);
  info.prompt = counting(40, 100'000);
  f.add(info);
  const StepPlan plan = f.step();
  EXPECT_EQ(plan.sequences.back().first_position, 32);
  EXPECT_EQ(plan.sequences.back().num_cached, 32);
  EXPECT_EQ(f.scheduler.stats().num_cached_tokens, 32);
  EXPECT_EQ(f.scheduler.stats().num_prompt_tokens, 80);
}

// Row D12 of the reports.
TEST(Scheduler, TwoRequestsWithTheSamePrefixMayArriveInTheSameStep) {
  SchedulerOptions options;
  options.min_shared_tokens = 64;
  Fixture f(64, options);
  for (SequenceId id : {1, 2}) {
    auto info = f.info(id, 40, 3);
    info.prompt = counting(40);
    f.add(info);
  }
  const StepPlan plan = f.step();
  EXPECT_THAT(ids(plan), ElementsAre(1, 2));
  f.steps_until_idle();
  EXPECT_EQ(f.num_used(), 0);
}

// `second` shares its first 64 tokens with sequence 1, whose prompt takes three steps.
struct SharedPrefix : Fixture {
  explicit SharedPrefix(SchedulerOptions options = small_options()) : Fixture(64, options) {
    add(info(1, 96, 3));
    second = info(2, 96, 3);
    std::copy_n(info(1, 96, 3).prompt.begin(), 64, second.prompt.begin());
  }
  SequenceInfo second;
};

TEST(Scheduler, APrefixThatAnotherComputesIsWaitedFor) {
  SchedulerOptions options = small_options();
  options.token_budget = 200;
  options.prefill_budget = 128;
  SharedPrefix f(options);
  f.add(f.second);
  EXPECT_THAT(ids(f.step()), ElementsAre(1));
  const StepPlan plan = f.step();
  EXPECT_THAT(ids(plan), ElementsAre(1, 2));
  EXPECT_EQ(plan.sequences[1].num_cached, 64);
  f.steps_until_idle();
}

// A window has moved on from the prefix: its blocks do not come back.
TEST(Scheduler, APrefixThatAnotherHasLeftBehindIsNotWaitedFor) {
  SchedulerOptions options = small_options();
  options.max_wanted_rows = 17;
  Fixture f({{kv::GroupKind::kFull, 0, 64, {}}, {kv::GroupKind::kSlidingWindow, 16, 8, {}}}, options);
  auto first = f.info(1, 400, 1), second = f.info(2, 100, 1);
  first.want_all_rows = true;  // and so leaves some of each step's budget
  std::copy_n(first.prompt.begin(), 96, second.prompt.begin());
  f.add(first);
  for (int i = 0; i < 15; ++i) f.step();
  f.add(second);
  const StepPlan plan = f.step();
  EXPECT_THAT(ids(plan), ElementsAre(1, 2));
  EXPECT_EQ(plan.sequences[1].first_position, 0);
}

TEST(Scheduler, WhoWaitsForAPrefixHoldsUpNobody) {
  SchedulerOptions options = small_options();
  options.token_budget = 200;
  options.prefill_budget = 128;
  options.max_skips = 0;
  SharedPrefix f(options);
  f.add(f.second);
  f.add(3, 8, 3);
  EXPECT_THAT(ids(f.step()), ElementsAre(1, 3));
}

TEST(Scheduler, APrefixIsNotWaitedForIfThatSavesNothing) {
  SchedulerOptions options = small_options();
  options.token_budget = 200;
  options.prefill_budget = 192;
  {
    SharedPrefix f(options);
    f.second.want_all_rows = true;
    f.add(f.second);
    EXPECT_THAT(ids(f.step()), ElementsAre(1, 2)) << "all rows are computed";
  }
  {
    SharedPrefix f(options);
    f.second.salt[0] = 1;
    f.add(f.second);
    EXPECT_THAT(ids(f.step()), ElementsAre(1, 2)) << "another salt";
  }
  {
    options.min_shared_tokens = 65;
    SharedPrefix f(options);
    f.add(f.second);
    EXPECT_THAT(ids(f.step()), ElementsAre(1, 2)) << "too short";
  }
}

TEST(Scheduler, ABetterRankDoesNotWaitForAWorseOnesPrefix) {
  SchedulerOptions options = small_options();
  options.policy = Policy::kPriority;
  options.max_wanted_rows = 17;  // the first one leaves some of each step's budget
  for (const int priority : {0, -1}) {
    Fixture f(64, options);
    auto first = f.info(1, 96, 3), second = f.info(2, 96, 3);
    first.want_all_rows = true;
    second.prompt = first.prompt;
    second.priority = priority;
    f.add(first);
    f.step();
    f.add(second);
    const StepPlan plan = f.step();
    if (priority == 0) {
      EXPECT_THAT(ids(plan), ElementsAre(1));
    } else {
      EXPECT_THAT(ids(plan), ElementsAre(1, 2));
    }
  }
}

TEST(Scheduler, APrefixWhoseComputationEndsEarlyIsWaitedForNoLonger) {
  SharedPrefix f;
  f.add(f.second);
  f.step();
  f.scheduler.abort(1);
  const StepPlan plan = f.step();
  EXPECT_THAT(ids(plan), ElementsAre(2));
  EXPECT_EQ(plan.sequences[0].first_position, 32);
}

// Row D13.
TEST(Scheduler, DifferentSaltsNeverShareABlock) {
  Fixture f(64);
  for (SequenceId id : {1, 2}) {
    auto info = f.info(id, 40, 3);
    info.prompt = counting(40);
    info.salt[0] = static_cast<uint8_t>(id);
    f.add(info);
    f.step();
  }
  EXPECT_EQ(f.scheduler.stats().num_cached_tokens, 0);
}

TEST(Scheduler, RowsWhoseLogitsAreWantedAreComputedEvenIfCached) {
  Fixture f(64);
  f.add(1, 40, 1);
  f.step();
  auto info = f.info(1, 40, 1);
  info.want_all_rows = true;
  f.add(info);
  const StepPlan plan = f.step();
  EXPECT_EQ(plan.sequences[0].first_position, 0);
  EXPECT_THAT(plan.batch.wanted_rows, testing::SizeIs(40));
}

TEST(Scheduler, RowsWhoseLogitsAreWantedAreBoundedInAStep) {
  SchedulerOptions options;
  options.max_sequences = options.decode_budget = 4;
  options.max_wanted_rows = 50;
  Fixture f(32, options);
  for (SequenceId id = 1; id <= 3; ++id) {
    auto info = f.info(id, 40, 1);
    info.want_all_rows = true;
    f.add(info);
  }
  f.add(4, 100, 1);
  size_t num_wanted = 0, num_rows = 0;
  while (!f.scheduler.idle()) {
    const StepPlan plan = f.step();
    ASSERT_FALSE(plan.sequences.empty());
    EXPECT_LE(plan.batch.wanted_rows.size(), 50u + 1)
        << "and the last row of the sequence that wants no other";
    num_wanted += plan.batch.wanted_rows.size();
    num_rows += static_cast<size_t>(plan.batch.num_rows());
  }
  EXPECT_EQ(num_wanted, 3u * 40 + 1);
  EXPECT_EQ(num_rows, 3u * 40 + 100);
}

TEST(Scheduler, APromptMayBeComputedWithoutGenerating) {
  Fixture f(2);
  f.add(1, 32, 0);
  f.step();
  EXPECT_TRUE(f.scheduler.idle());
}

// Row D14.
TEST(Scheduler, ARequestLargerThanThePoolIsRefusedAtOnceWithTheReason) {
  Fixture f(4);
  const Status status =
      f.scheduler.add(f.info(1, 60, 6), 0);  // 65 positions: the last token is never computed
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(status.error().message, HasSubstr("60 tokens and 6 new ones"));
  f.add(2, 60, 5);
  f.steps_until_idle();
}

TEST(Scheduler, NonsenseIsRefused) {
  Fixture f(4);
  EXPECT_FALSE(f.scheduler.add(f.info(1, 0, 1), 0).ok());
  EXPECT_FALSE(f.scheduler.add(f.info(1, 1, -1), 0).ok());
  EXPECT_FALSE(f.scheduler.add(f.info(1, 1, std::numeric_limits<int>::max()), 0).ok());
}

TEST(Scheduler, TheQueueIsBounded) {
  SchedulerOptions options;
  options.max_queue = 2;
  Fixture f(4, options);
  f.add(1, 4, 1);
  f.add(2, 4, 1);
  const Status status = f.scheduler.add(f.info(3, 4, 1), 0);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kExhausted);
  f.step();
  f.add(3, 4, 1);
}

TEST(Scheduler, AdmissionKeepsAReserveForEveryRunningSequence) {
  SchedulerOptions options =
      small_options();  // reserve 16: each needs a block for its prompt and one to grow
  options.prefill_budget = 64;
  options.token_budget = 80;
  Fixture f(5, options);
  for (SequenceId id : {1, 2, 3}) f.add(id, 16, 64);
  EXPECT_THAT(ids(f.step()), ElementsAre(1, 2));
  EXPECT_EQ(f.scheduler.state(3), State::kWaiting);
}

TEST(Scheduler, AFullyCachedPromptStillComputesItsLastToken) {
  Fixture f(64);
  for (int i = 0; i < 2; ++i) {
    f.add(1, 32, 1);
    EXPECT_EQ(f.step().sequences.at(0).first_position, i == 0 ? 0 : 16);
  }
}

TEST(Scheduler, AdmissionCountsThePrefixAdjustedNeed) {
  Fixture f(8, small_options());
  f.add(1, 65, 2);
  while (f.scheduler.tokens(1).size() == 65) f.step();
  f.add(2, 65, 1);  // alone it needs 5 blocks, of which it shares 4
  f.scheduler.abort(2);
  auto info = f.info(2, 65, 1);
  info.prompt = counting(65, 100'000);
  f.add(info);
  EXPECT_THAT(ids(f.step()), ElementsAre(1, 2));
}

// Row D14.
TEST(Scheduler, OneLargeRequestDoesNotBlockSmallOnesForEver) {
  Fixture f(12, small_options());
  f.add(1, 80, 33);  // 7 blocks in the end
  f.step();
  f.add(2, 120, 9);  // 8 blocks: has to wait
  f.add(3, 8, 4);
  f.step(), f.step();
  EXPECT_EQ(f.scheduler.state(2), State::kWaiting);
  EXPECT_EQ(f.scheduler.state(3), State::kRunning);
}

// D14
TEST(Scheduler, SmallRequestsDoNotStarveALargeOne) {
  SchedulerOptions options = small_options();
  options.max_skips = 3;
  Fixture f(12, options);
  f.add(1, 16, 40);
  f.step();
  f.add(2, 160, 9);
  int passed = 0;
  for (SequenceId id = 3; f.scheduler.state(2) == State::kWaiting; ++id) {
    ASSERT_LT(id, 500u);
    f.add(id, 8, 4);
    f.step();
    passed += f.scheduler.state(2) == State::kWaiting && f.scheduler.state(id) == State::kRunning;
  }
  EXPECT_EQ(passed, 3);
}

TEST(Scheduler, WaitingTooLongOutranksPriority) {
  SchedulerOptions options = small_options();
  options.policy = Policy::kPriority;
  options.max_sequences = 1;
  options.max_wait = 50'000;
  Fixture f(12, options);
  auto low = f.info(1, 8, 4);
  low.priority = 5;
  f.add(low);
  for (SequenceId id = 2; f.scheduler.state(1) == State::kWaiting; ++id) {
    ASSERT_LT(f.now, 60'000);
    f.add(id, 8, 4);
    f.step();
  }
  EXPECT_GE(f.now, 50'000);
}

TEST(Scheduler, PoliciesOrderTheQueue) {
  const auto order = [](Policy policy) {
    SchedulerOptions options = small_options();
    options.policy = policy;
    options.max_sequences = 1;
    Fixture f(64, options);
    for (const auto& [id, size, priority] : {std::tuple{1, 30, 2}, {2, 10, 2}, {3, 20, 1}}) {
      auto info = f.info(static_cast<SequenceId>(id), size, 1);
      info.priority = priority;
      f.add(info);
    }
    std::vector<SequenceId> order;
    while (!f.scheduler.idle()) order.push_back(f.step().sequences.at(0).id);
    return order;
  };
  EXPECT_THAT(order(Policy::kFcfs), ElementsAre(1, 2, 3));
  EXPECT_THAT(order(Policy::kPriority), ElementsAre(3, 1, 2));
  EXPECT_THAT(order(Policy::kShortestRemaining), ElementsAre(2, 3, 1));
}

TEST(Scheduler, PreemptsTheYoungestAndRecomputesItFromItsCachedPrefix) {
  SchedulerOptions options = small_options();
  options.decode_reserve = 0;
  Fixture f(5, options);
  f.add(1, 20, 45);
  f.add(2, 20, 30);
  std::vector<SequenceId> preempted;
  for (int i = 0; i < 40 && preempted.empty(); ++i) preempted = f.step().preempted;
  EXPECT_THAT(preempted, ElementsAre(2));
  EXPECT_EQ(f.scheduler.state(2), State::kPreempted);
  const size_t num_tokens = f.scheduler.tokens(2).size();
  EXPECT_GT(num_tokens, 20u);
  f.steps_until_idle();
  EXPECT_EQ(f.num_used(), 0);
}

TEST(Scheduler, NobodyIsAdmittedInAStepThatPreempts) {
  SchedulerOptions options = small_options();
  options.decode_reserve = 0;
  Fixture f(5, options);
  f.add(1, 20, 45);
  f.add(2, 20, 30);
  while (f.num_used() < 5) f.step();
  f.add(3, 8, 2);
  StepPlan plan;
  for (int i = 0; i < 40 && plan.preempted.empty(); ++i) plan = f.step();
  EXPECT_THAT(plan.preempted, ElementsAre(2));
  EXPECT_EQ(f.scheduler.state(3), State::kWaiting);
  f.step();
  EXPECT_EQ(f.scheduler.state(3), State::kRunning);
}

TEST(Scheduler, LowestPriorityIsPreemptedFirst) {
  SchedulerOptions options = small_options();
  options.decode_reserve = 0;
  options.policy = Policy::kPriority;
  Fixture f(5, options);
  auto low = f.info(1, 20, 45);
  low.priority = 1;
  f.add(low);
  f.add(2, 20, 45);
  std::vector<SequenceId> preempted;
  for (int i = 0; i < 40 && preempted.empty(); ++i) preempted = f.step().preempted;
  EXPECT_THAT(preempted, ElementsAre(1));
}

// Row D14: work is not thrown away again and again.
TEST(Scheduler, PreemptionDoesNotThrash) {
  SchedulerOptions options = small_options();
  options.decode_reserve = 1;
  Fixture f(20, options);
  for (SequenceId id = 1; id <= 12; ++id) f.add(id, 32, 200);
  f.steps_until_idle();
  EXPECT_GT(f.scheduler.stats().num_preemptions, 0);
  EXPECT_LE(f.scheduler.stats().num_preemptions, 12 * 4);
}

TEST(Scheduler, CommitsSeveralTokensOfAnAcceptedDraft) {
  SchedulerOptions options = small_options();
  options.max_drafts = 4;
  Fixture f(16, options);
  f.add(1, 10, 20);
  f.step();
  f.scheduler.propose(1, {71, 72, 73, 74, 75});
  StepPlan plan = f.schedule();
  EXPECT_EQ(plan.sequences[0].num_drafts, 4);
  EXPECT_THAT(plan.batch.tokens, ElementsAre(10, 71, 72, 73, 74));
  EXPECT_THAT(plan.batch.wanted_rows, ElementsAre(0, 1, 2, 3, 4));
  const SequenceResult two_accepted{1, 3, {71, 72, 90}, false};
  f.scheduler.commit({&two_accepted, 1});
  f.scheduler.check_consistency();
  plan = f.step();
  EXPECT_THAT(plan.batch.tokens, ElementsAre(90));
  EXPECT_THAT(plan.batch.positions, ElementsAre(13));
}

TEST(Scheduler, DraftsStopAtTheLastTokenAndNeverPreempt) {
  SchedulerOptions options = small_options();
  options.max_drafts = 8;
  options.decode_reserve = 0;
  Fixture f(2, options);
  f.add(1, 14, 4);
  f.add(2, 14, 3);
  f.step();
  f.scheduler.propose(1, counting(8));
  f.scheduler.propose(2, counting(8));
  const StepPlan plan = f.schedule();
  EXPECT_EQ(plan.sequences[0].num_drafts, 0);  // position 16 would need a third block
  EXPECT_EQ(plan.sequences[1].num_drafts, 1);  // its answer ends after two more tokens
  EXPECT_THAT(plan.preempted, IsEmpty());
  f.commit(plan);
}

TEST(Scheduler, AStepMayComputeLessThanPlanned) {
  Fixture f(16);
  f.add(1, 30, 2);
  StepPlan plan = f.schedule();
  const SequenceResult part{1, 20, {}, false};
  f.scheduler.commit({&part, 1});
  f.scheduler.check_consistency();
  plan = f.schedule();
  EXPECT_EQ(plan.sequences[0].first_position, 20);
  f.scheduler.commit({});  // nothing at all
  f.scheduler.check_consistency();
  plan = f.step();
  EXPECT_EQ(plan.sequences[0].first_position, 20);
  f.steps_until_idle();
}

// Row A8.
TEST(Scheduler, AbortFreesBlocksWithinOneStepInEveryState) {
  Fixture f(64, small_options());
  f.add(1, 8, 10);
  f.scheduler.abort(1);  // queued
  EXPECT_TRUE(f.scheduler.idle());

  f.add(2, 100, 10);
  f.step();
  f.scheduler.abort(2);  // prefilling
  EXPECT_TRUE(f.scheduler.idle());

  f.add(3, 8, 10);
  f.step(), f.step();
  f.scheduler.abort(3);  // decoding
  EXPECT_TRUE(f.scheduler.idle());

  auto remote = f.info(4, 40, 10);
  remote.remote_kv = true;
  f.add(remote);
  f.step();
  ASSERT_EQ(f.scheduler.state(4), State::kWaitingForKv);
  f.scheduler.abort(4);  // waiting for KV: the transfer drains first
  EXPECT_EQ(f.scheduler.state(4), State::kDraining);
  f.scheduler.on_kv_failed(4);
  EXPECT_TRUE(f.scheduler.idle());
  EXPECT_EQ(f.num_used(), 0);
}

// Row D10.
TEST(Scheduler, BlocksAreNotFreedWhileAStepUsesThem) {
  Fixture f(16);
  f.add(1, 30, 4);
  const StepPlan plan = f.schedule();
  f.scheduler.abort(1);
  EXPECT_EQ(f.scheduler.state(1), State::kDraining);
  EXPECT_EQ(f.num_used(), 2);
  f.commit(plan);
  EXPECT_EQ(f.scheduler.state(1), State::kFinished);
  EXPECT_EQ(f.num_used(), 0);
}

// D10
TEST(Scheduler, BlocksAreNotFreedWhileATransferUsesThem) {
  Fixture f(4, small_options());
  f.add(1, 30, 1);
  f.scheduler.hold(1);
  f.step();
  EXPECT_EQ(f.scheduler.state(1), State::kDraining);  // finished, and still being sent
  f.add(2, 60, 2);
  EXPECT_TRUE(f.step().sequences.empty());
  EXPECT_EQ(f.num_used(), 2);
  f.scheduler.release_hold(1);
  EXPECT_EQ(f.num_used(), 0);
  EXPECT_FALSE(f.step().sequences.empty());
}

TEST(Scheduler, AHeldSequenceIsNotPreempted) {
  SchedulerOptions options = small_options();
  options.decode_reserve = 0;
  Fixture f(4, options);
  f.add(1, 20, 40);
  f.add(2, 20, 40);
  f.step();
  f.scheduler.hold(2);
  for (int i = 0; i < 30; ++i) EXPECT_THAT(f.step().preempted, IsEmpty());
  f.scheduler.release_hold(2);
  f.steps_until_idle();
}

TEST(Scheduler, KvThatArrivesContinuesWithDecode) {
  Fixture f(16, small_options());
  auto info = f.info(1, 40, 10);
  info.remote_kv = true;
  f.add(info);
  StepPlan plan = f.step();
  EXPECT_TRUE(plan.sequences.empty());
  ASSERT_EQ(plan.kv_requests.size(), 1u);
  EXPECT_EQ(plan.kv_requests[0].num_positions, 40);
  EXPECT_THAT(plan.batch.groups[0].blocks_to_zero, testing::SizeIs(3));
  EXPECT_TRUE(f.step().sequences.empty());
  f.scheduler.on_kv_arrived(1, std::vector<int32_t>{77});
  plan = f.step();
  EXPECT_THAT(plan.batch.tokens, ElementsAre(77));
  EXPECT_THAT(plan.batch.positions, ElementsAre(40));
}

TEST(Scheduler, KvThatArrivesWithoutATokenComputesTheLastRowAgain) {
  Fixture f(16, small_options());
  auto info = f.info(1, 40, 10);
  info.remote_kv = true;
  f.add(info);
  f.step();
  f.scheduler.on_kv_arrived(1, {});
  f.scheduler.check_consistency();
  EXPECT_THAT(f.step().batch.positions, ElementsAre(39));
}

TEST(Scheduler, KvThatDoesNotArriveIsComputedHere) {
  Fixture f(16, small_options());
  auto info = f.info(1, 20, 10);
  info.remote_kv = true;
  f.add(info);
  f.step();
  f.scheduler.on_kv_failed(1);
  EXPECT_EQ(f.scheduler.state(1), State::kWaiting);
  EXPECT_EQ(f.scheduler.stats().num_kv_failures, 1);
  EXPECT_THAT(ids(f.step()), ElementsAre(1));
}

TEST(Scheduler, FewUncachedTokensAreNotFetched) {
  Fixture f(16, small_options());
  auto info = f.info(1, 15, 10);
  info.remote_kv = true;
  f.add(info);
  EXPECT_THAT(f.step().kv_requests, IsEmpty());
}

TEST(Scheduler, EventsForUnknownSequencesAndRepeatedEventsChangeNothing) {
  Fixture f(16, small_options());
  f.add(1, 20, 5);
  f.add(1, 99, 7);
  f.step();
  const SequenceResult late{2, 1, {1}, true};
  for (const SequenceId id : {1, 2}) {
    f.scheduler.on_kv_arrived(id, std::vector<int32_t>{5});
    f.scheduler.on_kv_failed(id);
    f.scheduler.release_hold(id);
    f.scheduler.commit({&late, 1});
    f.scheduler.check_consistency();
  }
  f.scheduler.abort(2);
  f.scheduler.hold(2);
  f.scheduler.propose(2, {1});
  EXPECT_EQ(f.scheduler.state(1), State::kRunning);
  EXPECT_EQ(f.scheduler.tokens(1).size(), 21u);
  EXPECT_EQ(f.steps_until_idle(), 4);
  f.scheduler.abort(1);
}

TEST(Scheduler, OptionsThatCouldStallAreRefused) {
  const auto problem = [](auto&& change) {
    SchedulerOptions options;
    change(options);
    const Status status = check_options(options);
    return status.ok() ? "" : status.error().message;
  };
  EXPECT_EQ(problem([](SchedulerOptions&) {}), "");
  EXPECT_THAT(problem([](SchedulerOptions& o) { o.max_sequences = 0; }), HasSubstr("max_sequences 0"));
  EXPECT_THAT(problem([](SchedulerOptions& o) { o.decode_budget = 63; }), HasSubstr("max_sequences 64"));
  EXPECT_THAT(problem([](SchedulerOptions& o) { o.token_budget = 1024; }), HasSubstr("leave prefill no row"));
  EXPECT_THAT(problem([](SchedulerOptions& o) { o.max_skips = -1; }), HasSubstr("negative"));
}

}  // namespace
}  // namespace tercet::sched
