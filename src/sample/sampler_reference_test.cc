// sample() against a plain reading of docs/sampling.md that sorts everything and skips nothing: whatever
// shortcut the sampler takes, the token is the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/random.h"
#include "sample/sampler.h"
#include "sample/softmax.h"

namespace tercet::sample {
namespace {

using core::SamplingParams;
using core::TokenId;

constexpr float kRemoved = -std::numeric_limits<float>::infinity();

struct Case {
  std::vector<float> logits;
  std::vector<TokenId> prompt, output;
  SamplingParams params;
  std::vector<uint64_t> allowed;
  std::vector<TokenId> banned;
  int64_t position = 0;
  uint64_t seed = 0;
};

struct Token {
  TokenId id;
  float logit;
  double weight = 0;
};
using Tokens = std::vector<Token>;

bool by_value(const Token& a, const Token& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; }

double sum_by_id(Tokens tokens, double (*value)(const Token&, float), float max) {
  std::sort(tokens.begin(), tokens.end(), [](const Token& a, const Token& b) { return a.id < b.id; });
  double lanes[16] = {};
  for (const Token& token : tokens) lanes[token.id % 16] += value(token, max);
  for (int half : {8, 4, 2, 1}) {
    for (int j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  }
  return lanes[0];
}

double weight_of(const Token& token, float) { return token.weight; }

template <class Less>
void keep_until(Tokens& tokens, Less less, double target) {
  std::sort(tokens.begin(), tokens.end(), less);
  double sum = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    sum += tokens[i].weight;
    if (sum >= target) return tokens.resize(i + 1);
  }
}

Tokens processed(const Case& c) {
  std::vector<float> z = c.logits;
  const SamplingParams& p = c.params;
  for (auto [token, bias] : p.logit_bias) z[token] += bias;
  for (size_t i = 0; i < z.size(); ++i) {
    auto id = static_cast<TokenId>(i);
    auto count = std::count(c.output.begin(), c.output.end(), id);
    if (count > 0 || std::count(c.prompt.begin(), c.prompt.end(), id) > 0) {
      z[i] = z[i] > 0 ? z[i] / p.repetition_penalty : z[i] * p.repetition_penalty;
    }
    if (count > 0) z[i] = z[i] - static_cast<float>(count) * p.frequency_penalty - p.presence_penalty;
  }
  Tokens tokens;
  for (size_t i = 0; i < z.size(); ++i) {
    auto id = static_cast<TokenId>(i);
    bool allowed = c.allowed.empty() || (c.allowed[i / 64] >> (i % 64) & 1);
    if (allowed && std::count(c.banned.begin(), c.banned.end(), id) == 0) tokens.push_back({id, z[i]});
  }
  return tokens;
}

// The token, or -1 where none is left.
TokenId reference(const Case& c) {
  const SamplingParams& p = c.params;
  Tokens tokens = processed(c);
  if (tokens.empty()) return -1;
  if (p.temperature < 1e-5f) return std::min_element(tokens.begin(), tokens.end(), by_value)->id;
  for (Token& token : tokens) token.logit /= p.temperature;
  std::sort(tokens.begin(), tokens.end(), by_value);
  float max = tokens[0].logit;
  for (Token& token : tokens) token.weight = softmax_weight(token.logit, max);
  if (p.top_k > 0 && static_cast<size_t>(p.top_k) < tokens.size()) tokens.resize(p.top_k);
  if (p.top_p < 1) keep_until(tokens, by_value, p.top_p * sum_by_id(tokens, weight_of, max));
  std::erase_if(tokens, [&](const Token& token) { return token.weight < p.min_p; });
  if (p.typical_p < 1) {
    double sum = sum_by_id(tokens, weight_of, max);
    auto product = [](const Token& token, float top) { return token.weight * double{token.logit - top}; };
    double mean = sum_by_id(tokens, product, max) / sum;
    auto distance = [&](const Token& token) { return std::fabs(double{token.logit - max} - mean); };
    auto by_surprise = [&](const Token& a, const Token& b) {
      return distance(a) != distance(b) ? distance(a) < distance(b) : by_value(a, b);
    };
    keep_until(tokens, by_surprise, p.typical_p * sum);
  }
  for (Token& token : tokens) {
    token.logit += gumbel(random_u32(c.seed, RandomPurpose::kSample, c.position, token.id));
  }
  return std::min_element(tokens.begin(), tokens.end(), by_value)->id;
}

TokenId actual(const Case& c) {
  static Scratch scratch;
  SamplerState state(c.prompt);
  for (TokenId token : c.output) state.push(token);
  auto result =
      sample(c.logits, c.params, state,
             {.position = c.position, .seed = c.seed, .allowed = c.allowed, .banned = c.banned}, scratch);
  if (!result.ok()) return result.error().code == ErrorCode::kInvalidArgument ? -1 : -2;
  return result->token;
}

using Random = std::mt19937_64;

bool chance(Random& random, double p) { return std::uniform_real_distribution<>(0, 1)(random) < p; }

// Continuous values, values with many ties, one value throughout, a few peaks, or a flat top.
std::vector<float> random_logits(Random& random, size_t vocab) {
  std::vector<float> logits(vocab);
  int kind = static_cast<int>(random() % 5);
  std::normal_distribution<float> normal(0, kind == 4 ? 0.01f : 3.0f);
  for (float& logit : logits) {
    logit = normal(random);
    if (kind == 1) logit = std::round(logit);
    if (kind == 2) logit = 1.25f;
  }
  if (kind == 3) {
    for (int i = 0; i < 5; ++i) logits[random() % vocab] = 15 + normal(random);
  }
  return logits;
}

Case random_case(Random& random, size_t vocab) {
  Case c;
  c.logits = random_logits(random, vocab);
  c.position = static_cast<int64_t>(random() % 100'000);
  c.seed = random();
  auto unit = [&] { return static_cast<float>(static_cast<double>(random() % 1001) / 1000); };
  auto token = [&] { return static_cast<TokenId>(random() % std::min<size_t>(vocab, 50)); };
  SamplingParams& p = c.params;
  if (chance(random, 0.6)) p.temperature = 2 * unit();
  if (chance(random, 0.4)) p.top_k = static_cast<int>(random() % (vocab + 2));
  if (chance(random, 0.2)) p.top_k = static_cast<int>(random() % 50);
  if (chance(random, 0.5)) p.top_p = chance(random, 0.2) ? 0.5f : unit();
  if (chance(random, 0.3)) p.min_p = unit() * unit() * unit();
  if (chance(random, 0.3)) p.typical_p = unit();
  if (chance(random, 0.2)) p.repetition_penalty = 0.5f + unit();
  if (chance(random, 0.2)) p.presence_penalty = 4 * unit() - 2;
  if (chance(random, 0.2)) p.frequency_penalty = 4 * unit() - 2;
  if (chance(random, 0.2)) p.logit_bias = {{token(), 20 * unit()}, {token(), -20 * unit()}};
  for (int i = 0; i < 20; ++i) c.prompt.push_back(token()), c.output.push_back(token());
  if (chance(random, 0.2)) {
    c.allowed.resize((vocab + 63) / 64);
    for (uint64_t& word : c.allowed)
      word = random() & (chance(random, 0.5) ? random() & random() : ~uint64_t{0});
  }
  if (chance(random, 0.2)) c.banned = {token(), token()};
  return c;
}

void expect_equal_over_random_cases(uint64_t seed, size_t max_vocab, int count) {
  Random random(seed);
  for (int i = 0; i < count; ++i) {
    size_t vocab = 1 + random() % max_vocab;
    Case c = random_case(random, vocab);
    const SamplingParams& p = c.params;
    ASSERT_EQ(actual(c), reference(c))
        << "case " << i << " vocab " << vocab << " T " << p.temperature << " top_k " << p.top_k << " top_p "
        << p.top_p << " min_p " << p.min_p << " typical_p " << p.typical_p << " allowed " << c.allowed.size();
  }
}

TEST(SamplerReference, SmallVocabularies) { expect_equal_over_random_cases(1, 12, 20'000); }
TEST(SamplerReference, MiddlingVocabularies) { expect_equal_over_random_cases(2, 400, 3'000); }
TEST(SamplerReference, LargeVocabularies) { expect_equal_over_random_cases(3, 8'000, 100); }

TEST(SamplerReference, AVocabularyOf262144) {
  Random random(4);
  std::vector<float> logits = random_logits(random, 262'144);
  for (int k : {0, 1, 40, 3'000}) {
    for (float p : {1.0f, 0.95f, 0.3f}) {
      Case c;
      c.logits = logits;
      c.params.top_k = k;
      c.params.top_p = p;
      c.params.temperature = 0.8f;
      c.seed = static_cast<uint64_t>(k);
      ASSERT_EQ(actual(c), reference(c)) << k << " " << p;
    }
  }
}

// The choice among many survivors is where the sampler skips tokens whose noise cannot win.
TEST(SamplerReference, FlatRowsWithoutTruncation) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Case c;
    c.logits.assign(1000, 0.5f);
    c.seed = seed;
    ASSERT_EQ(actual(c), reference(c)) << seed;
  }
}

}  // namespace
}  // namespace tercet::sample
