#include "server/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tercet::server {
namespace {

core::TokenEvent event(core::TokenId token, int64_t offset, std::string text) {
  core::TokenEvent event;
  event.token = token;
  event.text_offset = offset;
  event.text = std::move(text);
  event.logprob = core::TokenLogprob{token, -1.0f};
  return event;
}

std::vector<core::TokenId> shown(const ChoicePart& part) {
  std::vector<core::TokenId> tokens;
  for (const ShownToken& token : part.logprobs) tokens.push_back(token.token);
  return tokens;
}

using testing::ElementsAre;

// Row A2 of the reports: nothing of a stop string reaches the client, neither as text nor in
// log-probabilities.
TEST(Choice, TokensOfAStopStringAreNeverShown) {
  Choice choice;
  choice.push(event(1, 0, "ab"));
  EXPECT_THAT(shown(choice.take()), ElementsAre(1));
  choice.push(event(2, 2, ""));  // "EN", which may begin "END"
  EXPECT_TRUE(choice.take().logprobs.empty());
  core::TokenEvent last = event(3, 4, "");
  last.finish = core::FinishReason::kStop;
  last.stop_string = 0;
  choice.push(std::move(last));
  const ChoicePart part = choice.take();
  EXPECT_TRUE(part.logprobs.empty());
  EXPECT_EQ(part.text, "");
  EXPECT_EQ(choice.num_tokens(), 3);
}

TEST(Choice, TokensThatWereHeldBackComeWithTheirText) {
  Choice choice;
  choice.push(event(1, 0, "ab"));
  choice.push(event(2, 2, ""));
  EXPECT_THAT(shown(choice.take()), ElementsAre(1));
  choice.push(event(3, 4, "EN!"));  // no stop string after all
  EXPECT_THAT(shown(choice.take()), ElementsAre(2, 3));
}

TEST(Choice, ATokenThatAStopStringCutsIsShown) {
  Choice choice;
  core::TokenEvent last = event(1, 0, "a");  // "aEND"
  last.finish = core::FinishReason::kStop;
  last.stop_string = 0;
  choice.push(std::move(last));
  EXPECT_THAT(shown(choice.take()), ElementsAre(1));
}

// Row A11: none is missing.
TEST(Choice, AtTheEndEveryTokenIsShown) {
  Choice choice;
  choice.push(event(1, 0, "ab"));
  choice.push(event(2, 2, ""));
  core::TokenEvent last = event(3, 2, "");  // an end token
  last.finish = core::FinishReason::kStop;
  choice.push(std::move(last));
  EXPECT_THAT(shown(choice.take()), ElementsAre(1, 2, 3));
  EXPECT_FLOAT_EQ(static_cast<float>(choice.mean_logprob()), -1.0f);
}

}  // namespace
}  // namespace tercet::server
