#include "sample/sampler_state.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

namespace tercet::sample {
namespace {

using core::TokenId;
using testing::ElementsAre;
using testing::IsEmpty;
using Count = SamplerState::Count;

TEST(SamplerState, CountsDistinctTokens) {
  SamplerState state(std::vector<TokenId>{7, 3, 7, 7});
  for (TokenId token : {5, 1, 5}) state.push(token);
  EXPECT_THAT(state.prompt_tokens(), ElementsAre(3, 7));
  EXPECT_THAT(state.output(), ElementsAre(5, 1, 5));
  EXPECT_THAT(state.output_counts(), ElementsAre(Count{1, 1}, Count{5, 2}));
}

TEST(SamplerState, StartsEmpty) {
  EXPECT_THAT(SamplerState().prompt_tokens(), IsEmpty());
  EXPECT_THAT(SamplerState().output_counts(), IsEmpty());
  EXPECT_EQ(SamplerState(), SamplerState(std::vector<TokenId>{}));
}

TEST(SamplerState, RewindEqualsNeverHavingPushed) {
  std::mt19937 random(1);
  SamplerState state(std::vector<TokenId>{1, 2});
  std::vector<SamplerState> history = {state};
  for (int step = 0; step < 2000; ++step) {
    size_t n = std::min<size_t>(random() % 6, state.output().size());
    if (random() % 3 == 0) {
      state.rewind(n);
      history.resize(history.size() - n);
    } else {
      state.push(static_cast<TokenId>(random() % 20));
      history.push_back(state);
    }
    ASSERT_EQ(state, history.back());
    ASSERT_TRUE(std::ranges::equal(state.output_counts(), history.back().output_counts()));
  }
}

TEST(SamplerState, CopiesAreIndependent) {
  SamplerState state(std::vector<TokenId>{1});
  state.push(4);
  SamplerState copy = state;
  copy.push(4);
  EXPECT_THAT(state.output_counts(), ElementsAre(Count{4, 1}));
  EXPECT_THAT(copy.output_counts(), ElementsAre(Count{4, 2}));
  EXPECT_NE(state, copy);
}

TEST(SamplerStateDeathTest, RewindBeyondTheOutputIsAProgrammingError) {
  SamplerState state;
  EXPECT_DEATH(state.rewind(1), "output_.size");
}

}  // namespace
}  // namespace tercet::sample
