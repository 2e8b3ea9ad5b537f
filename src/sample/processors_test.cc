// Each processor from its published definition, with cases computed by hand.
#include "sample/processors.h"

#include <gmock/gmock.h>

#include <cmath>

#include "sample/softmax.h"

namespace tercet::sample {
namespace {

using core::SamplingParams;
using core::TokenId;
using testing::ElementsAre;
using testing::IsEmpty;
using Row = std::vector<float>;

// Logits of a row with these probabilities.
Row logits_of(std::initializer_list<double> probabilities) {
  Row row;
  for (double p : probabilities) row.push_back(static_cast<float>(std::log(p)));
  return row;
}

Candidates all_of(const Row& row) {
  Candidates candidates;
  gather(row, scan_row(row).max, kRemoved, candidates);
  return candidates;
}

std::vector<TokenId> tokens(const Candidates& candidates) {
  std::vector<TokenId> ids;
  for (const Candidate& candidate : candidates) ids.push_back(candidate.token);
  return ids;
}

std::vector<TokenId> top_k_of(const Row& row, int k) {
  Candidates candidates;
  top_k(row, scan_row(row).max, k, candidates);
  return tokens(candidates);
}

// Both forms, which must agree.
std::vector<TokenId> top_p_of(const Row& row, float p) {
  Candidates candidates = all_of(row), from_row;
  top_p(candidates, p);
  top_p(row, scan_row(row).max, p, from_row);
  EXPECT_EQ(tokens(candidates), tokens(from_row));
  return tokens(candidates);
}

std::vector<TokenId> min_p_of(const Row& row, float p) {
  Candidates candidates = all_of(row), from_row;
  min_p(candidates, p);
  min_p(row, scan_row(row).max, p, from_row);
  EXPECT_EQ(tokens(candidates), tokens(from_row));
  return tokens(candidates);
}

std::vector<TokenId> typical_of(const Row& row, float p) {
  Candidates candidates = all_of(row);
  typical(candidates, p);
  return tokens(candidates);
}

TEST(Bias, AddsToTheLogit) {
  Row row = {1, 2, 3};
  apply_bias(row, std::vector<std::pair<TokenId, float>>{{0, 2.5f}, {2, -100.0f}, {0, 0.5f}});
  EXPECT_THAT(row, ElementsAre(4, 2, -97));
}

TEST(Penalties, RepetitionDividesPositiveAndMultipliesNegativeOnceOverPromptAndOutput) {
  SamplerState state(std::vector<TokenId>{0, 1, 1});
  for (TokenId token : {1, 2, 2, 2}) state.push(token);
  SamplingParams params;
  params.repetition_penalty = 2;
  Row row = {3, -3, 8, 5, 0};
  apply_penalties(row, params, state);
  EXPECT_THAT(row, ElementsAre(1.5f, -6, 4, 5, 0));
}

TEST(Penalties, FrequencyAndPresenceCountTheOutputAlone) {
  SamplerState state(std::vector<TokenId>{0, 0, 3});
  for (TokenId token : {1, 2, 2, 2}) state.push(token);
  SamplingParams params;
  params.frequency_penalty = 0.5f;
  params.presence_penalty = 0.25f;
  Row row = {1, 1, 1, 1};
  apply_penalties(row, params, state);
  EXPECT_THAT(row, ElementsAre(1, 0.25f, -0.75f, 1));
}

TEST(Penalties, RepetitionActsBeforeFrequencyAndPresence) {
  SamplerState state;
  state.push(0);
  SamplingParams params;
  params.repetition_penalty = 2;
  params.frequency_penalty = 1;
  params.presence_penalty = 0.5f;
  Row row = {4};
  apply_penalties(row, params, state);
  EXPECT_THAT(row, ElementsAre(0.5f));
}

TEST(Penalties, NegativePenaltiesRewardRepetition) {
  SamplerState state;
  for (TokenId token : {1, 1}) state.push(token);
  SamplingParams params;
  params.frequency_penalty = -1;
  Row row = {1, 1};
  apply_penalties(row, params, state);
  EXPECT_THAT(row, ElementsAre(1, 3));
}

TEST(Masks, AllowedKeepsTheTokensWhoseBitIsSet) {
  Row row(130, 1.0f);
  apply_allowed(row, std::vector<uint64_t>{~uint64_t{0}, uint64_t{1} << 63, 2});
  for (int i = 0; i < 130; ++i) EXPECT_EQ(row[i], i < 64 || i == 127 || i == 129 ? 1 : kRemoved) << i;
}

TEST(Masks, BannedRemovesTheListedTokens) {
  Row row = {1, 2, 3};
  apply_banned(row, std::vector<TokenId>{2, 0});
  EXPECT_THAT(row, ElementsAre(kRemoved, 2, kRemoved));
}

TEST(Temperature, DividesTheLogits) {
  Row row = {1, -2, kRemoved};
  apply_temperature(row, 0.5f);
  EXPECT_THAT(row, ElementsAre(2, -4, kRemoved));
}

TEST(Gather, GivesUnnormalisedProbabilitiesInOrderOfIds) {
  Candidates candidates = all_of({1, kRemoved, 3, 2});
  EXPECT_THAT(tokens(candidates), ElementsAre(0, 2, 3));
  EXPECT_FLOAT_EQ(candidates[0].weight, std::exp(-2.0f));
  EXPECT_EQ(candidates[1].weight, 1);
}

TEST(TopK, KeepsTheLargest) {
  EXPECT_THAT(top_k_of({1, 5, 3, 4, 2}, 1), ElementsAre(1));
  EXPECT_THAT(top_k_of({1, 5, 3, 4, 2}, 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(top_k_of({1, 5, 3}, 9), ElementsAre(0, 1, 2));
}

TEST(TopK, TheLowestIdsWinTies) {
  EXPECT_THAT(top_k_of({1, 2, 2, 2, 1}, 2), ElementsAre(1, 2));
  EXPECT_THAT(top_k_of(Row(5000, 1.0f), 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(top_k_of({0.0f, -0.0f}, 1), ElementsAre(0));
}

TEST(TopK, NeverKeepsARemovedToken) { EXPECT_THAT(top_k_of({kRemoved, 1, kRemoved}, 2), ElementsAre(1)); }

TEST(TopK, RisingAndFallingRowsAreSelectedAlike) {
  Row rising(20'000);
  for (size_t i = 0; i < rising.size(); ++i) rising[i] = static_cast<float>(i);
  EXPECT_THAT(top_k_of(rising, 2), ElementsAre(19'998, 19'999));
  Row falling(rising.rbegin(), rising.rend());
  EXPECT_THAT(top_k_of(falling, 2), ElementsAre(0, 1));
}

TEST(TopP, KeepsTheSmallestSetThatReachesP) {
  Row row = logits_of({0.1, 0.5, 0.25, 0.15});
  EXPECT_THAT(top_p_of(row, 0.4f), ElementsAre(1));
  EXPECT_THAT(top_p_of(row, 0.55f), ElementsAre(1, 2));
  EXPECT_THAT(top_p_of(row, 0.8f), ElementsAre(1, 2, 3));
  EXPECT_THAT(top_p_of(row, 0.95f), ElementsAre(0, 1, 2, 3));
}

TEST(TopP, ZeroKeepsTheBestOne) {
  EXPECT_THAT(top_p_of({1, 2, 2}, 0), ElementsAre(1));
  EXPECT_THAT(top_p_of(Row(100, 0.0f), 0), ElementsAre(0));
}

// Powers of two, so that every sum is exact and p is met exactly: the token that reaches p is the last one
// kept.
TEST(TopP, ReachingPExactlyIsEnough) {
  EXPECT_THAT(top_p_of(Row(8, 0.0f), 0.5f), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(top_p_of(Row(256, 3.0f), 0.0078125f), ElementsAre(0, 1));
}

TEST(MinP, KeepsTokensNearTheLargest) {
  Row row = logits_of({0.05, 0.6, 0.3, 0.05});
  EXPECT_THAT(min_p_of(row, 0.05f), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(min_p_of(row, 0.1f), ElementsAre(1, 2));
  EXPECT_THAT(min_p_of(row, 0.6f), ElementsAre(1));
  EXPECT_THAT(min_p_of({2, 1, 2}, 1), ElementsAre(0, 2));
}

// q = (0.6, 0.3, 0.05, 0.05): entropy 0.967 nats; -log q = 0.511, 1.204, 2.996, 2.996, at distances 0.456,
// 0.237, 2.028, 2.028. So token 1 comes first, then 0, then 2 and 3.
TEST(Typical, KeepsTheTokensOfAverageSurprise) {
  Row row = logits_of({0.6, 0.3, 0.05, 0.05});
  EXPECT_THAT(typical_of(row, 0), ElementsAre(1));
  EXPECT_THAT(typical_of(row, 0.29f), ElementsAre(1));
  EXPECT_THAT(typical_of(row, 0.5f), ElementsAre(0, 1));
  EXPECT_THAT(typical_of(row, 0.92f), ElementsAre(0, 1, 2));
  EXPECT_THAT(typical_of(row, 0.97f), ElementsAre(0, 1, 2, 3));
}

TEST(Typical, RenormalisesOverWhatIsLeft) {
  // Without token 0: q = (0.75, 0.125, 0.125), entropy 0.736, distances 0.448, 1.344, 1.344.
  Candidates candidates = all_of(logits_of({0.6, 0.3, 0.05, 0.05}));
  candidates.erase(candidates.begin());
  typical(candidates, 0.74f);
  EXPECT_THAT(tokens(candidates), ElementsAre(1));
}

TEST(Processors, ALoneSurvivorStays) {
  Row row = {kRemoved, kRemoved, -5};
  EXPECT_THAT(top_p_of(row, 0.1f), ElementsAre(2));
  EXPECT_THAT(min_p_of(row, 1), ElementsAre(2));
  EXPECT_THAT(typical_of(row, 0), ElementsAre(2));
  EXPECT_THAT(top_k_of({kRemoved}, 1), IsEmpty());
}

}  // namespace
}  // namespace tercet::sample
