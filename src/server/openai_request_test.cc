#include "server/openai_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/test_generator.h"

namespace tercet::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<GenerationRequest> completion(const std::string& json) {
  TERCET_ASSIGN(const Value body, parse_object(json));
  return parse_completion(body, test_model());
}

Result<GenerationRequest> chat(const std::string& json) {
  TERCET_ASSIGN(const Value body, parse_object(json));
  return parse_chat(body, test_model());
}

// The error's field and message.
void expect_refused(const Result<GenerationRequest>& request, const std::string& field, const char* part) {
  ASSERT_FALSE(request.ok()) << field;
  EXPECT_EQ(request.error().where, field);
  EXPECT_THAT(request.error().message, HasSubstr(part)) << field;
}

TEST(OpenAiRequest, EveryFieldOfACompletionArrives) {
  const auto request = completion(R"({
      "model": "test", "prompt": "once", "suffix": "end", "max_tokens": 7, "min_tokens": 2, "ignore_eos": true,
      "temperature": 0.5, "top_k": 4, "top_p": 0.75, "min_p": 0.25, "typical_p": 0.5, "repetition_penalty": 1.5,
      "presence_penalty": 1, "frequency_penalty": -1, "logit_bias": {"5": -100, "7": 1.5}, "seed": -3,
      "stop": ["a", "b"], "stop_token_ids": [9], "n": 2, "best_of": 3, "logprobs": 2, "priority": -1,
      "cache_salt": "mine", "return_token_ids": true, "add_special_tokens": false})");
  ASSERT_TRUE(request.ok()) << request.error().to_string();
  EXPECT_EQ(std::get<std::string>(request->prompts.at(0)), "once");
  EXPECT_EQ(request->suffix, "end");
  EXPECT_FALSE(request->add_special_tokens);
  const core::StopParams& stop = request->stop;
  EXPECT_EQ(std::tuple(stop.max_tokens, stop.min_tokens, stop.ignore_eos), std::tuple(7, 2, true));
  EXPECT_THAT(stop.stop_strings, ElementsAre("a", "b"));
  EXPECT_THAT(stop.stop_token_ids, ElementsAre(9));
  const core::SamplingParams& sampling = request->sampling;
  EXPECT_EQ(std::tuple(sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p),
            std::tuple(0.5f, 4, 0.75f, 0.25f));
  EXPECT_EQ(std::tuple(sampling.typical_p, sampling.repetition_penalty, sampling.presence_penalty,
                       sampling.frequency_penalty),
            std::tuple(0.5f, 1.5f, 1.0f, -1.0f));
  EXPECT_THAT(sampling.logit_bias, ElementsAre(std::pair(5, -100.0f), std::pair(7, 1.5f)));
  EXPECT_EQ(sampling.seed, static_cast<uint64_t>(-3));
  EXPECT_EQ(sampling.num_logprobs, 2);
  EXPECT_EQ(sampling.num_prompt_logprobs, -1);
  EXPECT_EQ(std::tuple(request->n, request->best_of, request->priority), std::tuple(2, 3, -1));
  EXPECT_EQ(request->cache_salt, "mine");
  EXPECT_TRUE(request->return_token_ids);
}

TEST(OpenAiRequest, WhatIsAbsentOrNullIsTheDefault) {
  const auto request = completion(R"({"prompt": "a", "max_tokens": null, "stop": null, "seed": -1})");
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->stop.max_tokens, 16);
  EXPECT_EQ(request->sampling.seed, std::nullopt);
  EXPECT_EQ(request->sampling.num_logprobs, -1);
  EXPECT_EQ(std::tuple(request->n, request->best_of, request->stream), std::tuple(1, 1, false));
  EXPECT_EQ(chat(R"({"messages": [{"role": "user", "content": "a"}]})")->stop.max_tokens, -1);
}

TEST(OpenAiRequest, PromptsAreTextsOrTokensOneOrMany) {
  using Tokens = std::vector<core::TokenId>;
  EXPECT_THAT(completion(R"({"prompt": ["a", "b"]})")->prompts, ElementsAre("a", "b"));
  EXPECT_THAT(completion(R"({"prompt": [1, 2.0]})")->prompts, ElementsAre(Tokens{1, 2}));
  EXPECT_THAT(completion(R"({"prompt": [[1], [2, 3]]})")->prompts, ElementsAre(Tokens{1}, Tokens{2, 3}));
}

TEST(OpenAiRequest, UnknownFieldsAreIgnored) {
  EXPECT_TRUE(completion(R"({"prompt": "a", "unheard_of": {"x": 1}, "user": "me"})").ok());
}

// Row A17 of the reports.
TEST(OpenAiRequest, AWrongTypeIsNamedWithItsField) {
  expect_refused(completion(R"({"prompt": "a", "max_tokens": "7"})"), "max_tokens",
                 "an integer, but is a string");
  expect_refused(completion(R"({"prompt": "a", "max_tokens": 1.5})"), "max_tokens", "an integer");
  expect_refused(completion(R"({"prompt": "a", "max_tokens": true})"), "max_tokens", "a boolean");
  expect_refused(completion(R"({"prompt": "a", "max_tokens": 99999999999})"), "max_tokens", "32 bits");
  expect_refused(completion(R"({"prompt": "a", "temperature": []})"), "temperature",
                 "a number, but is an array");
  expect_refused(completion(R"({"prompt": "a", "stream": "yes"})"), "stream", "a boolean");
  expect_refused(completion(R"({"prompt": "a", "stop": [1]})"), "stop[0]", "a string");
  expect_refused(completion(R"({"prompt": "a", "logit_bias": {"x": 1}})"), "logit_bias", "a token id");
  expect_refused(completion(R"({"prompt": "a", "logit_bias": {"1": "x"}})"), "logit_bias.1", "a number");
  expect_refused(completion(R"({"prompt": {"a": 1}})"), "prompt", "an object");
  expect_refused(completion(R"({"prompt": [[1], [-2]]})"), "prompt[1][0]", "-2");
  expect_refused(completion(R"({"prompt": "a", "seed": "x"})"), "seed", "an integer");
  expect_refused(chat(R"({"messages": {}})"), "messages", "an array");
  expect_refused(chat(R"({"messages": [{"role": 1, "content": ""}]})"), "messages[0].role", "a string");
  expect_refused(chat(R"({"messages": [{"role": "user", "content": 7}]})"), "messages[0].content",
                 "a string or");
}

TEST(OpenAiRequest, WhatMakesNoSenseIsRefused) {
  expect_refused(completion("{}"), "prompt", "missing");
  expect_refused(completion(R"({"prompt": []})"), "prompt", "empty");
  expect_refused(completion(R"({"prompt": "a", "n": 0})"), "n", "1 to");
  expect_refused(completion(R"({"prompt": "a", "n": 3, "best_of": 2})"), "best_of", "3 to");
  expect_refused(completion(R"({"prompt": "a", "best_of": 2, "stream": true})"), "best_of", "stream");
  expect_refused(completion(R"({"prompt": "a", "top_p": 1.5})"), "top_p", "1.5");
  expect_refused(completion(R"({"prompt": "a", "temperature": -1})"), "temperature", "-1");
  expect_refused(completion(R"({"prompt": "a", "logit_bias": {"999999": 1}})"), "logit_bias", "999999");
  expect_refused(completion(R"({"prompt": "a", "stop_token_ids": [999999]})"), "stop_token_ids", "999999");
  expect_refused(completion(R"({"prompt": "a", "max_tokens": 2, "min_tokens": 3})"), "min_tokens", "0 to 2");
  expect_refused(completion(R"({"prompt": "a", "max_tokens": 0})"), "max_tokens", "echo");
  expect_refused(completion(R"({"prompt": "a", "stream_options": {}})"), "stream_options", "stream");
  expect_refused(completion(R"({"prompt": "a", "response_format": {"type": "json_object"}})"),
                 "response_format.type", "json_object");
  expect_refused(chat(R"({"messages": []})"), "messages", "empty");
  expect_refused(chat(R"({"messages": [{"role": "user"}]})"), "messages[0].content", "missing");
  expect_refused(chat(R"({"messages": [{"role": "user", "content": "a"}], "top_logprobs": 2})"),
                 "top_logprobs", "logprobs");
  expect_refused(chat(R"({"messages": [{"role": "user", "content": "a"}], "tool_choice": "required"})"),
                 "tool_choice", "auto or none");
}

TEST(OpenAiRequest, PromptsTimesChoicesAreBounded) {
  const auto request = [](int num_prompts, const std::string& choices) {
    std::string prompts = "\"a\"";
    for (int i = 1; i < num_prompts; ++i) prompts += ", \"a\"";
    return completion("{\"prompt\": [" + prompts + "], " + choices + "}");
  };
  EXPECT_TRUE(request(8, R"("n": 128)").ok());
  expect_refused(request(9, R"("n": 128)"), "n", "128 answers to 9 prompts");
  expect_refused(request(9, R"("best_of": 128)"), "best_of", "1024");
}

TEST(OpenAiRequest, AnImageIsRefusedByName) {
  expect_refused(chat(R"({"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": [
                     {"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "x"}}]}]})"),
                 "messages[1].content[1]", "image_url");
}

TEST(OpenAiRequest, HostileBodiesAreRefused) {
  for (const std::string& body :
       {std::string("{"), std::string(""), std::string("[]"), std::string("{\"prompt\": \"\xff\"}"),
        std::string("{\"prompt\": \"\\ud800\"}"), "{\"prompt\": " + std::string(100'000, '['),
        std::string("{\"prompt\": NaN}"), std::string("{\"prompt\": \"a\"} x")}) {
    EXPECT_FALSE(completion(body).ok()) << body.substr(0, 40);
  }
  std::string many = "{\"prompt\": [";
  for (int i = 0; i < 300'000; ++i) many += "[],";
  expect_refused(completion(many + "[]]}"), "", "arrays and objects");
  EXPECT_EQ(completion(R"({"prompt": "a", "prompt": "b"})")->prompts.size(), 1u);
  EXPECT_EQ(std::get<std::string>(completion(R"({"prompt": "a", "prompt": "b"})")->prompts[0]), "b");
}

TEST(OpenAiRequest, APartOfAChatReachesTheTemplate) {
  const auto request = chat(R"({"messages": [{"role": "developer", "content": [{"type": "text", "text": "be"},
      {"type": "text", "text": "brief"}]}, {"role": "user", "content": "hi"},
      {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": "{\"x\": 1}"}}]}],
      "tools": [{"type": "function", "function": {"name": "f"}}], "reasoning_effort": "low",
      "chat_template_kwargs": {"enable_thinking": false}, "add_generation_prompt": false})");
  ASSERT_TRUE(request.ok()) << request.error().to_string();
  const text::ChatInput& input = request->chat;
  EXPECT_EQ(input.messages[0].dict()->find("role")->string()->bytes(), "system");
  EXPECT_EQ(input.messages[0].dict()->find("content")->string()->bytes(), "be\nbrief");
  const Value& call = input.messages[2].dict()->find("tool_calls")->list()->items[0];
  EXPECT_NE(call.dict()->find("function")->dict()->find("arguments")->dict(), nullptr);
  EXPECT_TRUE(input.has_tools);
  EXPECT_EQ(input.kwargs.size(), 2u);
  EXPECT_FALSE(input.add_generation_prompt);
}

}  // namespace
}  // namespace tercet::server
