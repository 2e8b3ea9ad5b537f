#include "sample/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "sample/sample_test.h"

namespace tercet::sample {
namespace {

std::vector<float> normal_row(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 4);
  std::vector<float> row(size);
  for (float& logit : row) logit = normal(random);
  return row;
}

TEST(Softmax, WeightIsExpOfTheDifference) {
  for (float d = 0; d >= -87; d -= 0.37f)
    EXPECT_NEAR(softmax_weight(1 + d, 1) / std::exp((1 + d) - 1), 1, 3e-7) << d;
  EXPECT_EQ(softmax_weight(0, 0), 1);
  EXPECT_EQ(softmax_weight(7.5f, 7.5f), 1);
  EXPECT_GE(softmax_weight(-87.3f, 0), std::numeric_limits<float>::min());
  EXPECT_EQ(softmax_weight(-87.4f, 0), 0);
  EXPECT_EQ(softmax_weight(-3e38f, 3e38f), 0);
  EXPECT_EQ(softmax_weight(-kInfinity, 0), 0);
}

// The definition, literally: sixteen lanes in ascending order, then halves.
TEST(Softmax, SumFollowsTheDefinedOrder) {
  for (size_t size : {1, 2, 15, 16, 17, 31, 100, 4099}) {
    std::vector<float> row = normal_row(size, static_cast<uint32_t>(size));
    if (size > 20) row[3] = row[17] = -kInfinity;
    float max = scan_row(row).max;
    double lanes[16] = {};
    for (size_t i = 0; i < size; ++i) {
      if (row[i] != -kInfinity) lanes[i % 16] += softmax_weight(row[i], max);
    }
    double a[8], b[4];
    for (int j = 0; j < 8; ++j) a[j] = lanes[j] + lanes[j + 8];
    for (int j = 0; j < 4; ++j) b[j] = a[j] + a[j + 4];
    EXPECT_EQ(softmax_sum(row, max), (b[0] + b[2]) + (b[1] + b[3])) << size;
  }
}

TEST(Softmax, ScanFindsTheFirstOfTheLargest) {
  for (size_t size : {1, 5, 16, 40, 1000}) {
    for (size_t best = 0; best < size; best += 7) {
      std::vector<float> row(size, -1.0f);
      row[best] = 2;
      row[size - 1] = 2;
      RowScan scan = scan_row(row);
      EXPECT_EQ(scan.best, static_cast<core::TokenId>(best));
      EXPECT_EQ(scan.max, 2);
      EXPECT_TRUE(scan.all_finite);
    }
  }
  EXPECT_EQ(scan_row(std::vector<float>(33, -kInfinity)).max, -kInfinity);
}

TEST(Softmax, ScanNoticesEveryNonFiniteElement) {
  for (float bad : {kInfinity, -kInfinity, kNaN, -kNaN}) {
    for (size_t i = 0; i < 37; ++i) {
      std::vector<float> row = normal_row(37, 5);
      row[i] = bad;
      EXPECT_FALSE(scan_row(row).all_finite) << bad << " at " << i;
    }
  }
  EXPECT_TRUE(scan_row(std::vector<float>{3.4e38f, -3.4e38f, 1e-45f, 0}).all_finite);
}

}  // namespace
}  // namespace tercet::sample
