#include "sched/simulation.h"

#include <gtest/gtest.h>

namespace tercet::sched {
namespace {

// 200,000 random events in all; simulation_slow_test.cc runs a million per seed.
class SimulationTest : public testing::TestWithParam<uint64_t> {};

TEST_P(SimulationTest, InvariantsHoldAfterEveryRandomEvent) {
  Simulation simulation(GetParam());
  for (int i = 0; i < 25'000; ++i) simulation.event();
  simulation.drain();
  // The run was worth it: everything that can happen did.
  const Simulation::Counts& counts = simulation.counts();
  EXPECT_GT(counts.finished, 100);
  EXPECT_GT(counts.aborted, 10);
  EXPECT_GT(counts.refused, 10);
  EXPECT_GT(counts.fetches, counts.fetch_failures);
  EXPECT_GT(counts.fetch_failures, 0);
  EXPECT_GT(simulation.stats().num_cached_tokens, 1000);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SimulationTest, testing::Range<uint64_t>(0, 8));

}  // namespace
}  // namespace tercet::sched
