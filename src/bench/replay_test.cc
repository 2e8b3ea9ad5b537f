#include "bench/replay.h"

#include <gtest/gtest.h>

#include <set>

#include "base/file.h"

namespace tercet::bench {
namespace {

Trace sample(const std::string& name, const TraceScale& scale) {
  const std::string path = TERCET_TEST_DATA "/traces/" + name;
  auto trace = parse_trace(*read_file(path), path);
  EXPECT_TRUE(trace.ok());
  return scaled(*std::move(trace), scale);
}

ReplayOptions options(int num_kv_tokens) {
  ReplayOptions options;
  options.num_kv_tokens = num_kv_tokens;
  options.scheduler.max_sequences = 16;
  options.scheduler.decode_budget = 16;
  options.scheduler.prefill_budget = 512;
  options.scheduler.token_budget = 528;
  return options;
}

TEST(Replay, ALoneRequestTakesItsSteps) {
  Trace trace;
  trace.requests = {{10, 1000, 5, {}}};
  const ReplayResult result = replay(trace, options(4096));
  // Chunks of 512 and 488, then four decodes.
  EXPECT_EQ(result.num_steps, 6);
  EXPECT_EQ(result.num_rows, 1004);
  EXPECT_NEAR(result.first_token.p50, 2 * 0.02 + 1000 / 2000.0, 1e-9);
  EXPECT_NEAR(result.whole.p50, 6 * 0.02 + 1004 / 2000.0, 1e-9);
  EXPECT_EQ(result.queueing.p50, 0);
  EXPECT_EQ(result.seconds, 10 + result.whole.p50);
}

TEST(Replay, APoolThatIsLargeEnoughFindsAllThatTheTraceShares) {
  const Trace trace = sample("mooncake.jsonl", {1, 0, 16});
  const ReplayResult result = replay(trace, options(1 << 20));
  // Blocks of 32 tokens: what a prompt shares with any before it, but its last token.
  int64_t tokens = 0, shared = 0;
  std::set<int64_t> seen;
  for (const TraceRequest& request : trace.requests) {
    int64_t known = 0;
    for (const int64_t block : request.blocks) known += seen.contains(block) ? 32 : 0;
    seen.insert(request.blocks.begin(), request.blocks.end());
    tokens += request.prompt_tokens;
    shared += std::min<int64_t>(known, request.prompt_tokens - 1) / 16 * 16;
  }
  EXPECT_EQ(result.stats.num_prompt_tokens, tokens);
  EXPECT_LE(result.stats.num_cached_tokens, shared);
  // Requests that come together compute what they share, each for itself.
  EXPECT_GT(static_cast<double>(result.stats.num_cached_tokens), 0.8 * static_cast<double>(shared));
  EXPECT_EQ(result.stats.num_preemptions, 0);
  EXPECT_EQ(result.num_refused + result.num_never_fit, 0);
}

TEST(Replay, ASmallPoolFindsLessAndWaitsLonger) {
  const Trace trace = sample("mooncake.jsonl", {1, 0, 16});
  const ReplayResult large = replay(trace, options(1 << 20)), small = replay(trace, options(4096));
  EXPECT_LT(small.stats.num_cached_tokens, large.stats.num_cached_tokens);
  EXPECT_GT(small.queueing.p95, large.queueing.p95);
  EXPECT_GT(small.peak_kv_usage, 0.9);
  ReplayOptions uncached = options(1 << 20);
  uncached.prefix_caching = false;
  EXPECT_EQ(replay(trace, uncached).stats.num_cached_tokens, 0);
}

TEST(Replay, CountsWhatIsRefused) {
  Trace trace;
  trace.requests.assign(20, {0, 100, 5, {}});
  trace.requests[3].prompt_tokens = 10'000;
  ReplayOptions few = options(4096);
  few.scheduler.max_queue = 8;
  const ReplayResult result = replay(trace, few);
  EXPECT_EQ(result.num_never_fit, 1);
  EXPECT_EQ(result.num_refused, 11);
}

TEST(Replay, ShortestFirstLowersTheMedian) {
  const Trace trace = sample("azure.csv", {8, 300, 1});
  ReplayOptions first = options(32'768), shortest = first;
  shortest.scheduler.policy = sched::Policy::kShortestRemaining;
  const ReplayResult fcfs = replay(trace, first), srf = replay(trace, shortest);
  EXPECT_LT(srf.first_token.p50, fcfs.first_token.p50);
}

}  // namespace
}  // namespace tercet::bench
