// The sampled distribution against the one that the parameters define, by Pearson's chi-square test over
// 100,000 draws with fixed seeds. A test fails below a p-value of about 0.0001.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "sample/sampler.h"

namespace tercet::sample {
namespace {

using core::SamplingParams;
using core::TokenId;
using Probabilities = std::vector<double>;

constexpr int kDraws = 100'000;

// The value that a chi-square variable exceeds with probability 0.0001 (Wilson and Hilferty 1931).
double critical_value(int degrees) {
  constexpr double kNormalQuantile = 3.719;
  double v = 2.0 / (9.0 * degrees);
  return degrees * std::pow(1 - v + kNormalQuantile * std::sqrt(v), 3);
}

// `expected` adds up to 1; a token of probability 0 must never be drawn.
void expect_distribution(const std::vector<int>& counts, const Probabilities& expected) {
  double statistic = 0;
  int degrees = -1;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == 0) {
      EXPECT_EQ(counts[i], 0) << "token " << i;
      continue;
    }
    double mean = expected[i] * kDraws;
    ASSERT_GT(mean, 5) << "too rare to test";
    statistic += (counts[i] - mean) * (counts[i] - mean) / mean;
    ++degrees;
  }
  ASSERT_GT(degrees, 0);
  EXPECT_LT(statistic, critical_value(degrees)) << degrees << " degrees of freedom";
}

// Probabilities with the tokens for which keep[i] is false removed.
Probabilities renormalised(Probabilities p, const std::vector<bool>& keep) {
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) sum += p[i] = keep[i] ? p[i] : 0;
  for (double& value : p) value /= sum;
  return p;
}

class SampledDistribution : public testing::Test {
 protected:
  // Draws along the positions of one seed, then over the seeds at one position: neither axis may be biased.
  void check(const SamplingParams& params, const Probabilities& expected) {
    for (bool by_position : {true, false}) {
      std::vector<int> counts(logits_.size());
      for (int i = 0; i < kDraws; ++i) {
        SampleContext context{.position = by_position ? i : 17,
                              .seed = by_position ? 42 : static_cast<uint64_t>(i)};
        ++counts[sample(logits_, params, {}, context, scratch_)->token];
      }
      expect_distribution(counts, expected);
    }
  }

  Probabilities softmax(double temperature) const {
    Probabilities p;
    double sum = 0;
    for (float logit : logits_) sum += p.emplace_back(std::exp(logit / temperature));
    for (double& value : p) value /= sum;
    return p;
  }

  void set_probabilities(const Probabilities& p) {
    logits_.clear();
    for (double value : p) logits_.push_back(static_cast<float>(std::log(value) + 3));
  }

  std::vector<float> logits_ = {1.5f, -0.5f, 0.25f, 2.0f, -1.0f, 0.0f, 1.0f, -2.0f, 0.5f, 2.25f};
  Scratch scratch_;
};

TEST_F(SampledDistribution, Plain) { check({}, softmax(1)); }

TEST_F(SampledDistribution, Temperature) {
  for (float temperature : {0.5f, 1.7f}) {
    SamplingParams params;
    params.temperature = temperature;
    check(params, softmax(temperature));
  }
}

TEST_F(SampledDistribution, TopK) {
  SamplingParams params;
  params.top_k = 3;
  params.temperature = 1.25f;
  check(params, renormalised(softmax(1.25), {1, 0, 0, 1, 0, 0, 0, 0, 0, 1}));
}

TEST_F(SampledDistribution, TopP) {
  set_probabilities({0.05, 0.4, 0.1, 0.3, 0.15});
  SamplingParams params;
  params.top_p = 0.8f;
  check(params, renormalised({0.05, 0.4, 0.1, 0.3, 0.15}, {0, 1, 0, 1, 1}));
}

TEST_F(SampledDistribution, MinP) {
  set_probabilities({0.05, 0.4, 0.1, 0.3, 0.15});
  SamplingParams params;
  params.min_p = 0.2f;
  check(params, renormalised({0.05, 0.4, 0.1, 0.3, 0.15}, {0, 1, 1, 1, 1}));
}

// Entropy 0.967 nats: tokens 1 and 0 are the most typical (processors_test.cc).
TEST_F(SampledDistribution, Typical) {
  set_probabilities({0.6, 0.3, 0.05, 0.05});
  SamplingParams params;
  params.typical_p = 0.7f;
  check(params, renormalised({0.6, 0.3, 0.05, 0.05}, {1, 1, 0, 0}));
}

TEST_F(SampledDistribution, AllTogether) {
  set_probabilities({0.02, 0.3, 0.08, 0.25, 0.15, 0.1, 0.06, 0.04});
  SamplingParams params;
  params.top_k = 7;     // removes token 0: 0.98 is left
  params.top_p = 0.9f;  // 0.882: removes 7 and 6, at 0.88 + 0.06
  params.min_p = 0.3f;  // 0.09: removes token 2
  check(params, renormalised({0.02, 0.3, 0.08, 0.25, 0.15, 0.1, 0.06, 0.04}, {0, 1, 0, 1, 1, 1, 0, 0}));
}

TEST_F(SampledDistribution, ManyTokens) {
  std::mt19937 random(9);
  std::normal_distribution<float> normal(0, 0.7f);
  logits_.resize(500);
  for (float& logit : logits_) logit = normal(random);
  check({}, softmax(1));
}

// distribution() says what sample() does.
TEST_F(SampledDistribution, IsWhatDistributionReturns) {
  SamplingParams params;
  params.temperature = 0.9f;
  params.top_p = 0.85f;
  params.logit_bias = {{4, 2.5f}};
  Probabilities expected(logits_.size());
  auto survivors = distribution(logits_, params, {}, {}, scratch_).value();
  for (auto [token, probability] : survivors) {
    expected[token] = probability;
  }
  check(params, expected);
}

}  // namespace
}  // namespace tercet::sample
