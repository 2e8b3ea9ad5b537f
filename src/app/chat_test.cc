#include "app/chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "app/test_folder.h"
#include "app/test_generator.h"
#include "base/file.h"

namespace tercet::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A prompt has one token for each character of each message.
Result<std::vector<core::TokenId>> render(const std::vector<Message>& messages) {
  std::vector<core::TokenId> tokens;
  for (const Message& message : messages)
    tokens.insert(tokens.end(), message.content.begin(), message.content.end());
  return tokens;
}

class ChatInTheTerminal : public testing::Test {
 protected:
  // True: the chat goes on.
  bool type(std::string_view input) {
    said_.clear();
    const auto handled = chat_.handle(input, output_);
    error_ = handled.ok() ? "" : handled.error().to_string();
    return !handled.ok() || *handled;
  }
  std::vector<std::string> contents() const {
    std::vector<std::string> contents;
    for (const Message& message : chat_.messages())
      contents.push_back(message.role[0] + (":" + message.content));
    return contents;
  }
  std::string prompt() const {
    const auto& tokens = generator_.requests.back().prompt;
    return std::string(tokens.begin(), tokens.end());
  }

  TestGenerator generator_;
  ChatModel model_{&generator_, render, 40};
  ChatSettings settings_;
  Chat chat_{model_, settings_};
  std::string text_;
  std::string said_;
  std::string error_;
  ChatOutput output_{[this](std::string_view text) { text_ += text; },
                     [this](std::string_view said) { said_ += said; }, [] { return false; }};
};

TEST_F(ChatInTheTerminal, AnswersAndSendsTheWholeConversationAgain) {
  EXPECT_TRUE(type("one?"));
  EXPECT_EQ(text_, "answer");
  EXPECT_TRUE(type("two?"));
  EXPECT_EQ(prompt(), "one?answertwo?");
  EXPECT_THAT(contents(), ElementsAre("u:one?", "a:answer", "u:two?", "a:answer"));
}

TEST_F(ChatInTheTerminal, AnEmptyLineDoesNothing) {
  EXPECT_TRUE(type("  \n"));
  EXPECT_TRUE(generator_.requests.empty());
}

TEST_F(ChatInTheTerminal, AFullContextDropsTheOldestTurnsAndSaysSo) {
  type("/system S");
  type("first one");
  type("second one");
  EXPECT_EQ(said_, "");
  type("third");  // 1 + 9 + 6 + 10 + 6 + 5 characters and a reserve of 10 exceed 40
  EXPECT_EQ(said_, "the context of 40 tokens is full: the oldest 2 messages are dropped\n");
  EXPECT_EQ(prompt(), "Ssecond oneanswerthird");
  EXPECT_THAT(contents(), ElementsAre("s:S", "u:second one", "a:answer", "u:third", "a:answer"));
}

TEST_F(ChatInTheTerminal, AMessageLongerThanTheContextIsAnErrorAndLeavesNoTrace) {
  type("first");
  type(std::string(41, 'x'));
  EXPECT_THAT(error_, HasSubstr("the message takes 41 tokens, the context has 40"));
  EXPECT_THAT(contents(), ElementsAre("u:first", "a:answer"));
}

TEST_F(ChatInTheTerminal, AMessageThatLeavesLittleRoomIsAnswered) {
  type(std::string(39, 'x'));
  EXPECT_EQ(error_, "");
  EXPECT_EQ(text_, "answer");
}

TEST_F(ChatInTheTerminal, AnInterruptedAnswerIsKeptAsFarAsItCame) {
  output_.interrupted = [this] { return !text_.empty(); };
  type("one?");
  EXPECT_EQ(said_, "stopped\n");
  EXPECT_THAT(contents(), ElementsAre("u:one?", "a:an"));
}

TEST_F(ChatInTheTerminal, AFailedAnswerLeavesNoTrace) {
  generator_.error = "broken";
  EXPECT_TRUE(type("one?"));
  EXPECT_EQ(error_, "broken");
  EXPECT_THAT(contents(), ElementsAre());
}

TEST_F(ChatInTheTerminal, SystemSetsReplacesAndRemovesTheFirstMessage) {
  type("/system be  terse ");
  EXPECT_THAT(contents(), ElementsAre("s:be  terse"));
  type("one?");
  type("/system other");
  EXPECT_THAT(contents(), ElementsAre("s:other", "u:one?", "a:answer"));
  type("/system");
  EXPECT_THAT(contents(), ElementsAre("u:one?", "a:answer"));
}

TEST_F(ChatInTheTerminal, ResetKeepsTheSystemMessage) {
  type("/system S");
  type("one?");
  type("/reset");
  EXPECT_THAT(contents(), ElementsAre("s:S"));
}

TEST_F(ChatInTheTerminal, RegenAnswersTheLastMessageAgainWithAnotherSeed) {
  type("/params seed 5");
  type("one?");
  generator_.answer = {"other"};
  type("/regen");
  EXPECT_THAT(contents(), ElementsAre("u:one?", "a:other"));
  EXPECT_EQ(prompt(), "one?");
  EXPECT_EQ(generator_.requests[0].sampling.seed, 5u);
  EXPECT_EQ(generator_.requests[1].sampling.seed, 6u);
  type("two?");
  EXPECT_EQ(generator_.requests[2].sampling.seed, 5u);
}

TEST_F(ChatInTheTerminal, RegenWithoutAnAnswerIsAnErrorAndAFailedOneKeepsTheOld) {
  type("/regen");
  EXPECT_THAT(error_, HasSubstr("no answer"));
  type("one?");
  generator_.error = "broken";
  type("/regen");
  EXPECT_THAT(contents(), ElementsAre("u:one?", "a:answer"));
}

TEST_F(ChatInTheTerminal, ParamsShowsAndSets) {
  type("/params");
  EXPECT_THAT(said_, HasSubstr("temp 1, top-k 0, top-p 1"));
  type("/params top-k 7");
  EXPECT_THAT(said_, HasSubstr("top-k 7"));
  type("one?");
  EXPECT_EQ(generator_.requests.back().sampling.top_k, 7);
  type("/params top-k x");
  EXPECT_THAT(error_, HasSubstr("top-k: is x, expected a whole number from 0"));
  type("/params heat 1");
  EXPECT_THAT(error_, HasSubstr("heat: is no sampling parameter; there are: seed, temp"));
}

TEST_F(ChatInTheTerminal, SaveWritesTheMessagesAsJson) {
  const TestFolder folder;
  type("one?");
  type("/save " + (folder / "chat.json"));
  const auto json = nlohmann::json::parse(*read_file(folder / "chat.json"));
  EXPECT_EQ(json["messages"][1]["content"], "answer");
  type("/save");
  EXPECT_THAT(error_, HasSubstr("needs the name of a file"));
  type("/save /nonexistent/x");
  EXPECT_THAT(error_, HasSubstr("/nonexistent/x"));
}

TEST_F(ChatInTheTerminal, StatsAddUp) {
  type("one?");
  type("two?");
  type("/stats");
  EXPECT_THAT(
      said_,
      HasSubstr("in all: 2 answers, 18 prompt tokens (9 cached), 4 answer tokens, 0 messages dropped"));
}

TEST_F(ChatInTheTerminal, HelpListsEveryCommandAndQuitLeaves) {
  type("/help");
  for (const char* command :
       {"/help", "/system", "/reset", "/regen", "/save", "/params", "/stats", "/quit"}) {
    EXPECT_THAT(said_, HasSubstr(command));
  }
  EXPECT_FALSE(type("/quit"));
  EXPECT_TRUE(type("/unknown x"));
  EXPECT_EQ(error_, "/unknown: is no command; /help lists them");
}

}  // namespace
}  // namespace tercet::app
