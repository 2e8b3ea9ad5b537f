#include "bench/speed.h"

#include <gtest/gtest.h>

#include "bench/bandwidth.h"

namespace tercet::bench {
namespace {

TEST(Spread, OrdersItsValues) {
  const Spread three = spread({3, 1, 2});
  EXPECT_EQ(three.min, 1);
  EXPECT_EQ(three.median, 2);
  EXPECT_EQ(three.max, 3);
  EXPECT_EQ(spread({}).median, 0);
}

TEST(BandwidthFraction, ComparesEachRepetitionWithItsOwnBandwidth) {
  SpeedResult result;
  result.bytes_per_token = 100;
  result.generation_speed = {10, 20, 40};
  result.read_bandwidth = {2000, 4000, 4000};
  EXPECT_DOUBLE_EQ(bandwidth_fraction(result), 0.5);
}

TEST(BandwidthProbe, ReadsWithAnyNumberOfThreads) {
  for (int threads : {1, 3}) {
    const auto probe = BandwidthProbe::create(threads, 1 << 20);
    ASSERT_TRUE(probe.ok());
    EXPECT_GT(probe->measure(), 0);
  }
}

}  // namespace
}  // namespace tercet::bench
