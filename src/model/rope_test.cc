#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tercet::model {
namespace {

TEST(Rope, FrequenciesFallFromOne) {
  const std::vector<double> frequencies = rope_frequencies(8, 10000);
  ASSERT_EQ(frequencies.size(), 4U);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(frequencies[i], std::pow(10000.0, -static_cast<double>(i) / 4), 1e-15);
}

// The definition of YaRN's paper, written once more: wavelengths against the original context.
TEST(Rope, YarnMixesByTheNumberOfTurns) {
  for (const bool truncate : {true, false}) {
    const Yarn yarn{32, 4096, 32, 1, truncate};
    constexpr double kBase = 150000;
    constexpr int kDims = 64;
    std::vector<double> frequencies = rope_frequencies(kDims, kBase);
    const std::vector<double> before = frequencies;
    apply_yarn(yarn, kBase, frequencies);
    const auto pair_with = [&](double turns) {
      return kDims * std::log(4096 / (2 * M_PI * turns)) / (2 * std::log(kBase));
    };
    const double low = truncate ? std::floor(pair_with(32)) : pair_with(32);
    const double high = truncate ? std::ceil(pair_with(1)) : pair_with(1);
    int kept = 0, slowed = 0;
    for (size_t i = 0; i < frequencies.size(); ++i) {
      const double ramp = std::min(1.0, std::max(0.0, (static_cast<double>(i) - low) / (high - low)));
      EXPECT_NEAR(frequencies[i] / before[i], 1 - ramp + ramp / 32, 1e-12) << i;
      kept += frequencies[i] == before[i];
      slowed += std::fabs(frequencies[i] * 32 / before[i] - 1) < 1e-12;
    }
    EXPECT_GT(kept, 4);
    EXPECT_GT(slowed, 4);
  }
}

TEST(Rope, YarnsMagnitude) {
  EXPECT_NEAR(yarn_magnitude(32, 1), 0.1 * std::log(32.0) + 1, 1e-15);
  EXPECT_NEAR(yarn_magnitude(4, 0.707), 0.0707 * std::log(4.0) + 1, 1e-15);
}

}  // namespace
}  // namespace tercet::model
