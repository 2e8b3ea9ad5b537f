#include <gtest/gtest.h>

#include "sched/simulation.h"

namespace tercet::sched {
namespace {

class SimulationSlowTest : public testing::TestWithParam<uint64_t> {};

TEST_P(SimulationSlowTest, InvariantsHoldAfterEachOfAMillionRandomEvents) {
  Simulation simulation(GetParam());
  for (int i = 0; i < 1'000'000; ++i) simulation.event();
  simulation.drain();
  // Preemption throws away little: on average less than once for each answer.
  EXPECT_LT(simulation.stats().num_preemptions, simulation.counts().finished);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SimulationSlowTest, testing::Range<uint64_t>(100, 106));

}  // namespace
}  // namespace tercet::sched
