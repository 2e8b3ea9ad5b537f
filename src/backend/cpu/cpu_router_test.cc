#include "backend/cpu/cpu_router.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace tercet::backend {
namespace {

using Scores = RouterSpec::Scores;
using GroupScore = RouterSpec::GroupScore;

struct Choice {
  std::vector<int32_t> experts;
  std::vector<float> weights;
  bool finite = false;
};

Choice choose(const std::vector<float>& logits, const RouterSpec& spec,
              const std::vector<float>& correction = {}) {
  Choice choice{std::vector<int32_t>(static_cast<size_t>(spec.num_used)),
                std::vector<float>(static_cast<size_t>(spec.num_used))};
  choice.finite = choose_experts(logits.data(), correction.empty() ? nullptr : correction.data(), spec,
                                 choice.experts.data(), choice.weights.data());
  return choice;
}

// The same by the definition, in double: every step sorts.
Choice reference(const std::vector<float>& logits, const RouterSpec& spec,
                 const std::vector<float>& correction) {
  const size_t n = logits.size();
  std::vector<double> scores(logits.begin(), logits.end());
  const auto softmax = [](std::vector<double> values) {
    double sum = 0;
    for (double& value : values) sum += value = std::exp(value);
    for (double& value : values) value /= sum;
    return values;
  };
  if (spec.scores == Scores::kSoftmax) scores = softmax(scores);
  if (spec.scores == Scores::kSigmoid)
    for (double& score : scores) score = 1 / (1 + std::exp(-score));
  std::vector<double> choice = scores;
  for (size_t i = 0; i < correction.size(); ++i) choice[i] += static_cast<double>(correction[i]);
  const size_t size = n / static_cast<size_t>(spec.num_groups);
  std::vector<std::pair<double, size_t>> groups;
  for (size_t g = 0; g < static_cast<size_t>(spec.num_groups); ++g) {
    std::vector<double> members(choice.begin() + static_cast<std::ptrdiff_t>(g * size),
                                choice.begin() + static_cast<std::ptrdiff_t>((g + 1) * size));
    std::sort(members.rbegin(), members.rend());
    const bool two = spec.group_score == GroupScore::kSumOfTwoBest && members.size() > 1;
    groups.emplace_back(-(two ? members[0] + members[1] : members[0]), g);
  }
  std::sort(groups.begin(), groups.end());
  std::vector<std::pair<double, int32_t>> order;
  for (size_t i = 0; i < static_cast<size_t>(spec.num_groups_used); ++i)
    for (size_t e = groups[i].second * size; e < (groups[i].second + 1) * size; ++e)
      order.emplace_back(-choice[e], static_cast<int32_t>(e));
  std::sort(order.begin(), order.end());
  Choice result;
  for (int i = 0; i < spec.num_used; ++i) result.experts.push_back(order[static_cast<size_t>(i)].second);
  std::sort(result.experts.begin(), result.experts.end());
  std::vector<double> weights;
  for (const int32_t e : result.experts) weights.push_back(scores[static_cast<size_t>(e)]);
  if (spec.scores == Scores::kSoftmaxOfChosen) weights = softmax(weights);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double weight : weights)
    result.weights.push_back(
        static_cast<float>((spec.normalize ? weight / sum : weight) * static_cast<double>(spec.scale)));
  return result;
}

TEST(Router, EqualsItsDefinitionForEveryKind) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 1.5f);
  for (const Scores scores : {Scores::kSoftmax, Scores::kSoftmaxOfChosen, Scores::kSigmoid}) {
    for (const GroupScore group_score : {GroupScore::kBest, GroupScore::kSumOfTwoBest}) {
      for (const auto& [experts, used, groups, groups_used] :
           std::vector<std::array<int, 4>>{{4, 2, 1, 1}, {8, 3, 4, 2}, {60, 4, 1, 1}, {256, 8, 8, 4}}) {
        RouterSpec spec{scores, experts, used, groups, groups_used, group_score, used % 2 == 0, 2.5f};
        for (int trial = 0; trial < 50; ++trial) {
          std::vector<float> logits(static_cast<size_t>(experts)), correction;
          for (float& logit : logits) logit = normal(random);
          if (trial % 2 == 0)
            for (int i = 0; i < experts; ++i) correction.push_back(normal(random) * 0.2f);
          const Choice expected = reference(logits, spec, correction);
          const Choice got = choose(logits, spec, correction);
          EXPECT_TRUE(got.finite);
          ASSERT_EQ(expected.experts, got.experts);
          for (size_t i = 0; i < got.weights.size(); ++i)
            ASSERT_NEAR(expected.weights[i], got.weights[i], 2e-6);
        }
      }
    }
  }
}

TEST(Router, TiesGoToTheLowestExpert) {
  RouterSpec spec;
  spec.num_experts = 6;
  spec.num_used = 3;
  EXPECT_EQ(choose({1, 2, 2, 1, 2, 1}, spec).experts, (std::vector<int32_t>{1, 2, 4}));
  EXPECT_EQ(choose({0, 0, 0, 0, 0, 0}, spec).experts, (std::vector<int32_t>{0, 1, 2}));
  spec.num_groups = 3;
  spec.num_groups_used = 2;
  EXPECT_EQ(choose({0, 0, 0, 0, 0, 0}, spec).experts, (std::vector<int32_t>{0, 1, 2}));
}

TEST(Router, ALogitThatIsNotFiniteIsReportedAndLeavesValidExperts) {
  RouterSpec spec;
  spec.num_experts = 4;
  spec.num_used = 2;
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (size_t at = 0; at < 4; ++at) {
      std::vector<float> logits = {1, 2, 3, 4};
      logits[at] = bad;
      const Choice choice = choose(logits, spec);
      EXPECT_FALSE(choice.finite);
      EXPECT_TRUE(choice.experts[0] >= 0 && choice.experts[0] < choice.experts[1] && choice.experts[1] < 4);
    }
  }
}

TEST(Routes, GroupCopiesByMatrixAndRememberWhereARowsCopiesAre) {
  CpuRoutes routes;
  group_by_matrix({0, 2, /**/ 1, 2, /**/ 0, 1}, 4, 2, routes);
  EXPECT_EQ(routes.starts, (std::vector<int32_t>{0, 2, 4, 6, 6}));
  EXPECT_EQ(routes.row_of, (std::vector<int32_t>{0, 2, 1, 2, 0, 1}));
  EXPECT_EQ(routes.copies, (std::vector<int32_t>{0, 4, /**/ 2, 5, /**/ 1, 3}));
}

}  // namespace
}  // namespace tercet::backend
