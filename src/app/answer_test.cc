#include "app/answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "app/test_generator.h"

namespace tercet::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

core::Request request() {
  core::Request request;
  request.id = 7;
  request.prompt = {1, 2, 3, 4};
  return request;
}

TEST(Generate, StreamsTheTextAndReturnsTokensAndUsage) {
  TestGenerator generator;
  std::vector<std::string> streamed;
  const auto answer = generate(
      generator, request(), [&](std::string_view text) { streamed.emplace_back(text); },
      [] { return false; });
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(streamed, ElementsAre("an", "swer"));
  EXPECT_EQ(answer->text, "answer");
  EXPECT_THAT(answer->tokens, ElementsAre(100, 101));
  EXPECT_EQ(answer->finish, core::FinishReason::kStop);
  EXPECT_EQ(answer->usage.num_prompt_tokens, 4);
}

TEST(Generate, AnInterruptKeepsWhatThereIs) {
  TestGenerator generator;
  std::string streamed;
  const auto answer = generate(
      generator, request(), [&](std::string_view text) { streamed += text; },
      [&] { return !streamed.empty(); });
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->text, "an");
  EXPECT_EQ(answer->finish, core::FinishReason::kAborted);
}

TEST(Generate, AnInterruptStopsAPromptThatIsBeingRead) {
  TestGenerator generator;
  generator.steps_before_answer = 1000000;
  const auto answer = generate(
      generator, request(), [](std::string_view) {}, [] { return true; });
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->text, "");
}

TEST(Generate, AnErrorOfTheEngineIsAnError) {
  TestGenerator generator;
  generator.error = "layer 3: not finite";
  const auto answer = generate(
      generator, request(), [](std::string_view) {}, [] { return false; });
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().message, "layer 3: not finite");
}

TEST(Answer, WithoutTokensHasNoSpeed) {
  TestGenerator generator;
  generator.answer = {};
  const auto answer = generate(
      generator, request(), [](std::string_view) {}, [] { return false; });
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->generation_speed(), 0);
  EXPECT_THAT(format_stats(*answer), HasSubstr("answer: 0 tokens, 0.0 tokens/s"));
}

TEST(Answer, SpeedLeavesCachedTokensAndTheFirstTokenOut) {
  Answer answer;
  answer.tokens = {1, 2, 3, 4, 5};
  answer.usage = {100, 60, 5};
  answer.seconds_to_first_token = 2;
  answer.seconds_total = 4;
  EXPECT_EQ(answer.prompt_speed(), 20);
  EXPECT_EQ(answer.generation_speed(), 2);
}

TEST(Answer, IsOneLineOfJson) {
  Answer answer;
  answer.text = "two\nlines \xff";  // not UTF-8: replaced
  answer.tokens = {5, 6};
  answer.usage = {4, 2, 2};
  answer.finish = core::FinishReason::kLength;
  const std::string text = to_json(answer);
  EXPECT_EQ(text.find('\n'), text.npos);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["text"], "two\nlines \xef\xbf\xbd");
  EXPECT_EQ(json["token_ids"], nlohmann::json::parse("[5, 6]"));
  EXPECT_EQ(json["finish_reason"], "length");
  EXPECT_EQ(json["usage"],
            nlohmann::json::parse(R"({"prompt_tokens":4,"cached_tokens":2,"completion_tokens":2})"));
}

}  // namespace
}  // namespace tercet::app
