#include "sample/sampler.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>
#include <set>

#include "sample/logprobs.h"
#include "sample/sample_test.h"

namespace tercet::sample {
namespace {

using core::SamplingParams;
using core::TokenId;
using testing::ElementsAre;
using testing::HasSubstr;
using Row = std::vector<float>;

SamplingParams greedy() {
  SamplingParams params;
  params.temperature = 0;
  return params;
}

Result<SampleResult> try_sample(const Row& row, const SamplingParams& params,
                                const SampleContext& context = {}, const SamplerState& state = {}) {
  Scratch scratch;
  return sample(row, params, state, context, scratch);
}

TokenId sample_token(const Row& row, const SamplingParams& params, const SampleContext& context = {},
                     const SamplerState& state = {}) {
  return try_sample(row, params, context, state).value().token;
}

Row random_row(size_t size, uint32_t seed, float deviation = 2) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  Row row(size);
  for (float& logit : row) logit = normal(random);
  return row;
}

// The tokens of `count` positions of one sequence.
std::vector<TokenId> sequence(const SamplingParams& params, uint64_t seed, int count) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < count; ++i) {
    tokens.push_back(sample_token(random_row(200, i), params, {.position = i, .seed = seed}));
  }
  return tokens;
}

TEST(Sampler, GreedyTakesTheLowestIdOfTheLargest) {
  EXPECT_EQ(sample_token({1, 3, 3, 2}, greedy()), 1);
  EXPECT_EQ(sample_token(Row(1000, -4.0f), greedy()), 0);
  EXPECT_EQ(sample_token({-3}, greedy()), 0);
}

// Row A15, the half without drafts.
TEST(Sampler, GreedyActsAfterBiasPenaltiesAndMasks) {
  SamplingParams params = greedy();
  params.logit_bias = {{0, 5.0f}};
  EXPECT_EQ(sample_token({1, 3, 2}, params), 0);
  params = greedy();
  params.presence_penalty = 2;
  SamplerState state;
  state.push(1);
  EXPECT_EQ(sample_token({1, 3, 2}, params, {}, state), 2);
  const TokenId banned[] = {1};
  EXPECT_EQ(sample_token({1, 3, 2}, greedy(), {.banned = banned}), 2);
  const uint64_t allowed[] = {0b101};
  EXPECT_EQ(sample_token({1, 3, 2}, greedy(), {.allowed = allowed}), 2);
}

TEST(Sampler, GreedyIgnoresSeedAndTruncation) {
  SamplingParams params = greedy();
  params.typical_p = 0.1f;  // alone it would keep token 1
  Row row = {std::log(0.6f), std::log(0.3f), std::log(0.05f), std::log(0.05f)};
  for (uint64_t seed = 0; seed < 20; ++seed) EXPECT_EQ(sample_token(row, params, {.seed = seed}), 0);
}

TEST(Sampler, ATinyTemperatureIsGreedy) {
  for (float temperature : {1e-45f, 1e-20f, 9e-6f}) {
    SamplingParams params;
    params.temperature = temperature;
    for (uint64_t seed = 0; seed < 50; ++seed)
      EXPECT_EQ(sample_token({20, 20, 19.99f}, params, {.seed = seed}), 0);
  }
  SamplingParams params;
  params.temperature = 1e-4f;
  for (uint64_t seed = 0; seed < 50; ++seed) EXPECT_EQ(sample_token({19, 20, 19}, params, {.seed = seed}), 1);
}

TEST(Sampler, NonFiniteLogitsNameThePositionAndTheToken) {
  for (float bad : {kInfinity, -kInfinity, kNaN}) {
    Row row(100, 1.0f);
    row[42] = bad;
    auto result = try_sample(row, greedy(), {.position = 7});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::kInternal);
    EXPECT_EQ(result.error().where, "logits at position 7");
    EXPECT_THAT(result.error().message, HasSubstr("token 42"));
  }
}

TEST(Sampler, NoTokenLeftIsAnError) {
  const uint64_t allowed[] = {0b010};
  const TokenId banned[] = {1};
  for (float temperature : {0.0f, 1.0f}) {
    SamplingParams params;
    params.temperature = temperature;
    auto result = try_sample({1, 2, 3}, params, {.allowed = allowed, .banned = banned});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(result.error().message, HasSubstr("leave none of 3"));
  }
}

TEST(Sampler, ParametersAreChecked) {
  SamplingParams params;
  params.top_p = 2;
  EXPECT_EQ(try_sample({1, 2}, params).error().where, "top_p");
  params = {};
  params.logit_bias = {{2, 1.0f}};
  EXPECT_EQ(try_sample({1, 2}, params).error().where, "logit_bias");
  params.logit_bias = {{0, 3e38f}, {0, 3e38f}};
  EXPECT_THAT(try_sample({1, 2}, params).error().message, HasSubstr("overflow"));
}

// The definition: argmax of logit / T + gumbel(random_u32(seed, kSample, position, token)).
TEST(Sampler, TheTokenIsTheArgmaxWithGumbelNoise) {
  SamplingParams params;
  params.temperature = 0.7f;
  for (int position = 0; position < 200; ++position) {
    Row row = random_row(500, position, 1);
    TokenId expected = 0;
    float best = -kInfinity;
    for (TokenId token = 0; token < 500; ++token) {
      float score = row[token] / 0.7f + gumbel(random_u32(99, RandomPurpose::kSample, position, token));
      if (score > best) best = score, expected = token;
    }
    ASSERT_EQ(sample_token(row, params, {.position = position, .seed = 99}), expected);
  }
}

// Row A13 of the reports: a seed gives the same tokens whatever is sampled in between, with the same scratch
// memory.
TEST(Sampler, OtherRequestsDoNotDisturbASeed) {
  SamplingParams params, other;
  other.top_k = 5;
  other.presence_penalty = 1;
  std::vector<TokenId> alone = sequence(params, 1234, 50);
  Scratch scratch;
  SamplerState other_state;
  for (int i = 0; i < 50; ++i) {
    other_state.push(sample(random_row(300, 77 + i), other, other_state,
                            {.position = i, .seed = static_cast<uint64_t>(i * 31)}, scratch)
                         ->token);
    EXPECT_EQ(sample(random_row(200, i), params, {}, {.position = i, .seed = 1234}, scratch)->token,
              alone[i]);
  }
}

TEST(Sampler, SeedsPositionsAndChoicesAreIndependent) {
  SamplingParams params;
  EXPECT_EQ(sequence(params, 5, 30), sequence(params, 5, 30));
  EXPECT_NE(sequence(params, 5, 30), sequence(params, 6, 30));
  EXPECT_NE(sequence(params, hash_seed(5, 0), 30), sequence(params, hash_seed(5, 1), 30));
  std::set<TokenId> seen;
  for (int position = 0; position < 100; ++position) {
    seen.insert(sample_token(Row(100, 0.0f), params, {.position = position, .seed = 5}));
  }
  EXPECT_GT(seen.size(), 40u);
}

// Removing tokens that were not chosen leaves the choice as it is: each token's noise is its own.
TEST(Sampler, ATokensNoiseDoesNotDependOnTheOthers) {
  SamplingParams params;
  for (int position = 0; position < 100; ++position) {
    Row row = random_row(64, position);
    TokenId token = sample_token(row, params, {.position = position, .seed = 8});
    std::mt19937_64 random(position);
    uint64_t allowed[] = {random() | uint64_t{1} << token};
    EXPECT_EQ(sample_token(row, params, {.position = position, .seed = 8, .allowed = allowed}), token);
  }
}

// Row A14: with several tokens accepted in one step, pushing them one by one gives what single steps give,
// and a draft that was pushed and rewound leaves no trace.
TEST(Sampler, PenaltiesActOncePerEmittedToken) {
  SamplingParams params;
  params.frequency_penalty = 0.7f;
  params.presence_penalty = 0.3f;
  params.repetition_penalty = 1.2f;
  const std::vector<TokenId> prompt = {1, 2, 3};
  SamplerState plain(prompt), drafting(prompt);
  for (int step = 0; step < 60; ++step) {
    for (TokenId draft : {4, 4, 5}) drafting.push(draft);
    drafting.rewind(3);
    Row row = random_row(20, step);
    TokenId expected = sample_token(row, params, {.position = step, .seed = 3}, plain);
    ASSERT_EQ(sample_token(row, params, {.position = step, .seed = 3}, drafting), expected);
    plain.push(expected);
    drafting.push(expected);
  }
  EXPECT_EQ(plain, drafting);
  EXPECT_EQ(plain.output().size(), 60u);
}

TEST(Logprobs, AreOfTheRawLogits) {
  SamplingParams params;
  params.temperature = 0.1f;
  params.top_k = 1;
  params.logit_bias = {{3, 100.0f}};
  params.num_logprobs = 2;
  Row row = {std::log(0.2f), std::log(0.5f), std::log(0.2f), std::log(0.1f)};
  SampleResult result = try_sample(row, params).value();
  EXPECT_EQ(result.token, 3);
  ASSERT_TRUE(result.logprob.has_value());
  EXPECT_EQ(result.logprob->token, 3);
  EXPECT_NEAR(result.logprob->logprob, std::log(0.1), 1e-6);
  ASSERT_EQ(result.top_logprobs.size(), 2u);
  EXPECT_EQ(result.top_logprobs[0].token, 1);
  EXPECT_NEAR(result.top_logprobs[0].logprob, std::log(0.5), 1e-6);
  EXPECT_EQ(result.top_logprobs[1].token, 0);
}

TEST(Logprobs, ComeInTheNumberAskedFor) {
  SamplingParams params;
  EXPECT_FALSE(try_sample({1, 2}, params)->logprob.has_value());
  params.num_logprobs = 0;
  EXPECT_TRUE(try_sample({1, 2}, params)->logprob.has_value());
  EXPECT_TRUE(try_sample({1, 2}, params)->top_logprobs.empty());
  params.num_logprobs = 9;
  EXPECT_EQ(try_sample({1, 2}, params)->top_logprobs.size(), 2u);
}

TEST(Logprobs, OfAGivenTokenAreTheSame) {
  SamplingParams params;
  params.num_logprobs = 3;
  Row row = random_row(1000, 4);
  SampleResult sampled = try_sample(row, params).value();
  Logprobs given = logprobs(row, sampled.token, 3, 0).value();
  EXPECT_EQ(given.chosen.logprob, sampled.logprob->logprob);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(given.top[i].logprob, sampled.top_logprobs[i].logprob);
  double sum = 0;
  for (TokenId token = 0; token < 1000; ++token) sum += std::exp(logprobs(row, token, 0, 0)->chosen.logprob);
  EXPECT_NEAR(sum, 1, 1e-5);
  row[5] = kInfinity;
  EXPECT_FALSE(logprobs(row, 0, 0, 0).ok());
}

TEST(Distribution, IsWhatSurvivesRenormalised) {
  SamplingParams params;
  params.top_k = 2;
  Row row = {std::log(0.2f), std::log(0.6f), std::log(0.15f), std::log(0.05f)};
  Scratch scratch;
  auto probabilities = distribution(row, params, {}, {}, scratch).value();
  ASSERT_EQ(probabilities.size(), 2u);
  EXPECT_EQ(probabilities[0].token, 0);
  EXPECT_NEAR(probabilities[0].probability, 0.25, 1e-6);
  EXPECT_NEAR(probabilities[1].probability, 0.75, 1e-6);
  probabilities = distribution(row, greedy(), {}, {}, scratch).value();
  ASSERT_EQ(probabilities.size(), 1u);
  EXPECT_EQ(probabilities[0].token, 1);
  EXPECT_EQ(probabilities[0].probability, 1);
}

}  // namespace
}  // namespace tercet::sample
