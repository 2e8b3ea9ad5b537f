// The API from a request's body to the answer's, over a generator that answers what it is told.
#include "server/openai_api.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "http/test_exchange.h"
#include "server/test_generator.h"

namespace tercet::server {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

class OpenAiApi : public testing::Test {
 protected:
  std::shared_ptr<http::TestExchange> send(const std::string& path, const std::string& body,
                                           const std::string& method = "POST") {
    if (!host_) {
      host_ = std::make_unique<EngineHost>(generator_, metrics_);
      handler_ = http::route(api_routes({*host_, metrics_, model_, [] { return 3; }}), {});
    }
    const auto exchange = std::make_shared<http::TestExchange>(http::Request{method, path, {}, body});
    handler_(exchange);
    return exchange;
  }
  http::Response ask(const std::string& path, const std::string& body, const std::string& method = "POST") {
    const auto response = send(path, body, method)->wait();
    EXPECT_TRUE(response.has_value()) << path << " " << body;
    return response.value_or(http::Response{});
  }
  json complete(const std::string& body) { return json::parse(ask("/v1/completions", body).body); }
  json embed(const std::string& body) { return json::parse(ask("/v1/embeddings", body).body); }
  json chat(const std::string& more = "") {
    return json::parse(ask("/v1/chat/completions", chat_body(more)).body);
  }
  static std::string chat_body(const std::string& more = "") {
    return R"({"messages": [{"role": "user", "content": "hi"}])" + more + "}";
  }
  // The objects of a stream, which must end with [DONE].
  std::vector<json> stream(const std::string& path, const std::string& body) {
    const http::Response response = ask(path, body);
    EXPECT_THAT(response.content_type, HasSubstr("text/event-stream"));
    std::vector<json> events;
    std::string_view rest = response.body;
    while (!rest.empty()) {
      const size_t end = rest.find("\n\n");
      const std::string event(rest.substr(0, end));
      EXPECT_TRUE(event.starts_with("data: ")) << event;
      rest.remove_prefix(end + 2);
      if (event == "data: [DONE]") break;
      events.push_back(json::parse(event.substr(6)));
    }
    EXPECT_EQ(rest, "");
    EXPECT_TRUE(response.body.ends_with("data: [DONE]\n\n"));
    return events;
  }

  ServedModel model_ = test_model(true);
  TestGenerator generator_;
  Metrics metrics_{"test"};
  http::Handler handler_;
  std::unique_ptr<EngineHost> host_;
};

TEST_F(OpenAiApi, AChatIsAnswered) {
  const json answer = chat(R"(, "model": "alias")");
  EXPECT_EQ(answer["object"], "chat.completion");
  EXPECT_EQ(answer["model"], "test");
  EXPECT_EQ(answer["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(answer["choices"][0]["message"]["content"], "hello");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(answer["choices"][0]["logprobs"], nullptr);
  const std::string prompt = "user: hi\nassistant: ";
  EXPECT_EQ(answer["usage"]["prompt_tokens"], prompt.size());
  EXPECT_EQ(answer["usage"]["completion_tokens"], 5);
  EXPECT_EQ(answer["usage"]["total_tokens"], prompt.size() + 5);
  EXPECT_EQ(answer["usage"]["prompt_tokens_details"]["cached_tokens"], 2);
  const auto tokens = generator_.requests()[0].prompt;
  EXPECT_EQ(std::string(tokens.begin(), tokens.end()), prompt);
}

TEST_F(OpenAiApi, AStreamBeginsWithTheRoleAndEndsWithTheReason) {
  const auto events = stream("/v1/chat/completions", chat_body(R"(, "stream": true)"));
  ASSERT_EQ(events.size(), 7u);
  EXPECT_EQ(events[0]["object"], "chat.completion.chunk");
  EXPECT_EQ(events[0]["choices"][0]["delta"], json({{"role", "assistant"}, {"content", ""}}));
  std::string text;
  for (size_t i = 1; i < 6; ++i) {
    text += events[i]["choices"][0]["delta"]["content"];
    EXPECT_EQ(events[i]["choices"][0]["finish_reason"], nullptr);
    EXPECT_EQ(events[i]["id"], events[0]["id"]);
    EXPECT_FALSE(events[i].contains("usage"));
  }
  EXPECT_EQ(text, "hello");
  EXPECT_EQ(events[6]["choices"][0]["delta"], json::object());
  EXPECT_EQ(events[6]["choices"][0]["finish_reason"], "stop");
}

// Row A6 of the reports.
TEST_F(OpenAiApi, StreamedUsageIsOneLastChunkWithoutChoices) {
  const std::string usage = R"(, "stream": true, "stream_options": {"include_usage": true}, "n": 2)";
  for (const auto& events : {stream("/v1/chat/completions", chat_body(usage)),
                             stream("/v1/completions", R"({"prompt": "hi")" + usage + "}")}) {
    EXPECT_EQ(events.back()["choices"], json::array());
    EXPECT_EQ(events.back()["usage"]["completion_tokens"], 10);
    for (size_t i = 0; i + 1 < events.size(); ++i) EXPECT_EQ(events[i]["usage"], nullptr);
  }
}

TEST_F(OpenAiApi, ContinuousUsageCountsInEveryChunk) {
  const auto events =
      stream("/v1/completions",
             R"({"prompt": "hi", "stream": true, "stream_options": {"continuous_usage_stats": true}})");
  ASSERT_EQ(events.size(), 5u);
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i]["usage"]["completion_tokens"], i + 1);
    EXPECT_EQ(events[i]["usage"]["prompt_tokens"], 2);
  }
}

TEST_F(OpenAiApi, BatchedPromptsAndChoicesAreNumberedInOrder) {
  generator_.answer = [](const core::Request& request) {
    return answer_events(std::string(1, static_cast<char>(request.prompt[0])) +
                         std::to_string(request.sampling.seed.value_or(0) % 10));
  };
  const json answer = complete(R"({"prompt": ["a", "b"], "n": 2, "seed": 5})");
  ASSERT_EQ(answer["choices"].size(), 4u);
  std::vector<std::string> texts;
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(answer["choices"][i]["index"], i);
    texts.push_back(answer["choices"][i]["text"]);
  }
  EXPECT_EQ(texts[0], "a5");
  EXPECT_EQ(texts[2], "b5") << "a prompt of a batch gets what it gets alone";
  EXPECT_EQ(texts[1][0], 'a');
  EXPECT_EQ(texts[3][0], 'b');
  EXPECT_NE(generator_.requests()[0].sampling.seed, generator_.requests()[1].sampling.seed);
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 2);
}

TEST_F(OpenAiApi, BestOfKeepsTheMostLikely) {
  int num_asked = 0;
  generator_.answer = [&](const core::Request& request) {
    EXPECT_GE(request.sampling.num_logprobs, 0);
    auto events = answer_events(std::string(1, static_cast<char>('a' + num_asked)));
    events[0].logprob->logprob = num_asked == 1 ? -0.1f : -3.0f - static_cast<float>(num_asked);
    ++num_asked;
    return events;
  };
  const json answer = complete(R"({"prompt": "x", "best_of": 3})");
  ASSERT_EQ(answer["choices"].size(), 1u);
  EXPECT_EQ(answer["choices"][0]["text"], "b");
  EXPECT_EQ(answer["choices"][0]["logprobs"], nullptr);
  EXPECT_EQ(answer["usage"]["completion_tokens"], 3);
}

TEST_F(OpenAiApi, CompletionLogprobsAreFourListsOfOneLength) {
  generator_.answer = [](const core::Request&) {
    // "é" over two tokens.
    auto events = answer_events("a\xC3\xA9z");
    events[1].text.clear();
    events[2].text = "\xC3\xA9";
    events[2].text_offset = 1;
    return events;
  };
  const json logprobs = complete(R"({"prompt": "x", "logprobs": 2})")["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["tokens"], json({"a", "bytes:\\xc3", "bytes:\\xa9", "z"}));
  EXPECT_EQ(logprobs["text_offset"], json({0, 1, 1, 2}));
  EXPECT_EQ(logprobs["token_logprobs"], json({-0.5, -0.5, -0.5, -0.5}));
  EXPECT_EQ(logprobs["top_logprobs"][0], json({{"a", -0.5}, {"z", -2.0}}));
}

TEST_F(OpenAiApi, ChatLogprobsHaveBytes) {
  generator_.answer = [](const core::Request&) { return answer_events("a\xFF"); };
  const json content = chat(R"(, "logprobs": true, "top_logprobs": 2)")["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 2u);
  EXPECT_EQ(content[0]["token"], "a");
  EXPECT_EQ(content[0]["bytes"], json({97}));
  EXPECT_EQ(content[0]["top_logprobs"].size(), 2u);
  EXPECT_EQ(content[1]["token"], "\uFFFD");
  EXPECT_EQ(content[1]["bytes"], json({255}));
}

TEST_F(OpenAiApi, AnEchoHasThePromptAndItsLogprobs) {
  generator_.answer = [](const core::Request& request) {
    EXPECT_EQ(request.sampling.num_prompt_logprobs, 1);
    auto events = answer_events("d");
    core::TokenEvent prompt;
    prompt.prompt_logprobs = {{{'b', -1.0f}, {{'b', -1.0f}}}, {{'c', -2.0f}, {{'x', -0.5f}}}};
    events.insert(events.begin(), prompt);
    return events;
  };
  for (const bool streams : {false, true}) {
    const std::string body = R"({"prompt": "abc", "echo": true, "logprobs": 1, "max_tokens": 1, "stream": )" +
                             std::string(streams ? "true}" : "false}");
    const json answer = streams ? stream("/v1/completions", body)[0] : complete(body);
    EXPECT_EQ(answer["choices"][0]["text"], "abcd");
    const json logprobs = answer["choices"][0]["logprobs"];
    EXPECT_EQ(logprobs["tokens"], json({"a", "b", "c", "d"}));
    EXPECT_EQ(logprobs["token_logprobs"], json({nullptr, -1.0, -2.0, -0.5}));
    EXPECT_EQ(logprobs["text_offset"], json({0, 1, 2, 3}));
    EXPECT_EQ(logprobs["top_logprobs"][0], nullptr);
    EXPECT_EQ(logprobs["top_logprobs"][2], json({{"x", -0.5}, {"c", -2.0}}));
  }
}

TEST_F(OpenAiApi, TokensComeAsIdsWhereAskedFor) {
  const json choice = complete(R"({"prompt": [65, 66], "return_token_ids": true})")["choices"][0];
  EXPECT_EQ(choice["prompt_token_ids"], json({65, 66}));
  EXPECT_EQ(choice["token_ids"], json({104, 101, 108, 108, 111}));
}

TEST_F(OpenAiApi, ASuffixAsksToFillTheMiddle) {
  complete(R"({"prompt": "a", "suffix": "b"})");
  EXPECT_THAT(generator_.requests()[0].prompt, ElementsAre(257, 'a', 258, 'b', 259));
}

TEST_F(OpenAiApi, ASuffixNeedsAModelThatKnowsHow) {
  model_ = test_model(false);
  const auto response = ask("/v1/completions", R"({"prompt": "a", "suffix": "b"})");
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(json::parse(response.body)["error"]["param"], "suffix");
}

// Row A9.
TEST_F(OpenAiApi, APromptLongerThanTheContextIsRefusedWithBothNumbers) {
  const std::string text(150, 'x');
  const auto response = ask("/v1/completions", R"({"prompt": ")" + text + "\"}");
  EXPECT_EQ(response.status, 400);
  const json error = json::parse(response.body)["error"];
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_THAT(error["message"], testing::AllOf(HasSubstr("100"), HasSubstr("150")));
  EXPECT_EQ(error["type"], "invalid_request_error");
  const auto chat =
      ask("/v1/chat/completions", R"({"messages": [{"role": "user", "content": ")" + text + "\"}]}");
  EXPECT_EQ(json::parse(chat.body)["error"]["param"], "messages");
}

TEST_F(OpenAiApi, ErrorsAreInOpenAisShape) {
  EXPECT_EQ(ask("/v1/completions", "{").status, 400);
  EXPECT_EQ(json::parse(ask("/v1/completions", R"({"prompt": 5})").body)["error"]["param"], "prompt");
  const auto unknown = ask("/v1/completions", R"({"prompt": "a", "model": "other"})");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(json::parse(unknown.body)["error"]["code"], "model_not_found");
  EXPECT_EQ(ask("/v1/completions", R"({"prompt": [9999]})").status, 400);
  EXPECT_EQ(ask("/v1/completions", R"({"prompt": ""})").status, 400);
}

TEST_F(OpenAiApi, AFullQueueIs429WithRetryAfter) {
  generator_.refusal = Error{ErrorCode::kExhausted, "the queue is full", ""};
  const auto response = ask("/v1/completions", R"({"prompt": "a", "stream": true})");
  EXPECT_EQ(response.status, 429);
  EXPECT_THAT(response.headers, testing::Contains(testing::Pair("Retry-After", "1")));
}

TEST_F(OpenAiApi, AChoiceThatFindsTheQueueFullFailsTheRequestBeforeItsStreamBegins) {
  generator_.max_requests = 127;
  generator_.stands_still = true;
  for (int i = 0; i < 30; ++i) {  // handed over one by one, some would meet a step in between
    const auto response = ask("/v1/completions", R"({"prompt": "a", "n": 128, "stream": true})");
    ASSERT_EQ(response.status, 429);
    while (!host_->idle()) std::this_thread::yield();
  }
}

TEST_F(OpenAiApi, WhileDrainingRequestsAre503) {
  EXPECT_EQ(ask("/health", "", "GET").status, 200);
  host_->drain();
  EXPECT_EQ(ask("/v1/completions", R"({"prompt": "a"})").status, 503);
  EXPECT_EQ(ask("/health", "", "GET").status, 503);
}

// Row A18.
TEST_F(OpenAiApi, AFailureInTheMiddleOfAStreamIsItsLastEvent) {
  generator_.answer = [](const core::Request&) {
    auto events = answer_events("abc", core::FinishReason::kError);
    events.back().error = "layer 3: a value is not finite";
    return events;
  };
  const std::string body = ask("/v1/completions", R"({"prompt": "a", "stream": true})").body;
  const size_t last = body.rfind("data: ");
  EXPECT_THAT(json::parse(body.substr(last + 6))["error"]["message"], HasSubstr("not finite"));
  EXPECT_THAT(body, testing::Not(HasSubstr("[DONE]")));
  EXPECT_EQ(ask("/v1/completions", R"({"prompt": "a"})").status, 500);
}

// Row A10.
TEST_F(OpenAiApi, AnAbortedRequestIsReportedAsSuch) {
  generator_.answer = [](const core::Request&) { return answer_events("ab", core::FinishReason::kAborted); };
  EXPECT_EQ(ask("/v1/completions", R"({"prompt": "a"})").status, 503);
}

// Row A8, the server's half.
TEST_F(OpenAiApi, AClientThatLeavesAbortsEveryChoice) {
  generator_.stands_still = true;
  const auto exchange = send("/v1/completions", R"({"prompt": ["a", "b"], "n": 2, "stream": true})");
  exchange->wait_for_data();
  exchange->disconnect();
  while (!host_->idle()) std::this_thread::yield();
  EXPECT_EQ(generator_.num_aborts(), 4);
}

TEST_F(OpenAiApi, StoppingTheHostEndsWhatRuns) {
  generator_.stands_still = true;
  const auto exchange = send("/v1/completions", R"({"prompt": "a"})");
  host_->stop();
  EXPECT_EQ(exchange->wait()->status, 503);
}

TEST_F(OpenAiApi, AnEmbeddingHasLengthOne) {
  const json answer = embed(R"({"input": "abcd", "model": "alias"})");
  EXPECT_EQ(answer["object"], "list");
  EXPECT_EQ(answer["model"], "test");
  EXPECT_EQ(answer["usage"], json({{"prompt_tokens", 4}, {"total_tokens", 4}}));
  ASSERT_EQ(answer["data"].size(), 1u);
  EXPECT_EQ(answer["data"][0]["object"], "embedding");
  EXPECT_EQ(answer["data"][0]["index"], 0);
  const double norm = std::sqrt(9.0 + 16 + 1);
  const auto vector = answer["data"][0]["embedding"].get<std::vector<double>>();
  ASSERT_EQ(vector.size(), 4u);
  EXPECT_NEAR(vector[0], 3 / norm, 1e-7);
  EXPECT_NEAR(vector[1], 4 / norm, 1e-7);
  EXPECT_NEAR(vector[3], -1 / norm, 1e-7);
  EXPECT_EQ(generator_.requests()[0].embedding, core::Pooling::kLast);
  const std::string metrics = ask("/metrics", "", "GET").body;
  EXPECT_THAT(metrics, HasSubstr("vllm:prompt_tokens_total{model_name=\"test\"} 4"));
  EXPECT_THAT(metrics, HasSubstr("vllm:time_to_first_token_seconds_count{model_name=\"test\"} 0"));
}

TEST_F(OpenAiApi, InputsToEmbedAreTextsOrTokensOneOrMany) {
  const auto sizes = [&](const std::string& input) {
    const size_t before = generator_.requests().size();
    const json answer = embed(R"({"input": )" + input + "}");
    std::vector<size_t> found;
    for (size_t i = before; i < generator_.requests().size(); ++i)
      found.push_back(generator_.requests()[i].prompt.size());
    EXPECT_EQ(answer["data"].size(), found.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(answer["data"][i]["index"], i);
    return found;
  };
  EXPECT_THAT(sizes(R"("abc")"), ElementsAre(3));
  EXPECT_THAT(sizes(R"(["abc", "d"])"), ElementsAre(3, 1));
  EXPECT_THAT(sizes("[5, 6]"), ElementsAre(2));
  EXPECT_THAT(sizes("[[5, 6], [7]]"), ElementsAre(2, 1));
}

TEST_F(OpenAiApi, Base64HoldsTheFloatsOfTheArray) {
  generator_.embedding = [](const core::Request&) { return std::vector<float>{0, 7, 0, 0}; };
  EXPECT_EQ(embed(R"({"input": "a"})")["data"][0]["embedding"], json({0.0, 1.0, 0.0, 0.0}));
  EXPECT_EQ(embed(R"({"input": "a", "encoding_format": "base64"})")["data"][0]["embedding"],
            "AAAAAAAAgD8AAAAAAAAAAA==");
}

TEST_F(OpenAiApi, FewerDimensionsAreCutAndNormalizedAgain) {
  const json vector = embed(R"({"input": "abcd", "dimensions": 2})")["data"][0]["embedding"];
  ASSERT_EQ(vector.size(), 2u);
  EXPECT_NEAR(vector[0].get<double>(), 0.6, 1e-7);
  EXPECT_NEAR(vector[1].get<double>(), 0.8, 1e-7);
}

TEST_F(OpenAiApi, AListOfInputsGoesThroughAWindow) {
  std::string inputs;
  for (int i = 0; i < 500; ++i)
    inputs += fmt::format(R"({}"{}")", i > 0 ? ", " : "", std::string(1 + i % 9, 'x'));
  const json answer = embed(R"({"input": [)" + inputs + "]}");
  ASSERT_EQ(answer["data"].size(), 500u);
  for (size_t i = 0; i < 500; ++i) {
    const double size = static_cast<double>(1 + i % 9);
    EXPECT_NEAR(answer["data"][i]["embedding"][1].get<double>(), size / std::sqrt(10 + size * size), 1e-6);
  }
  EXPECT_LE(generator_.most_at_once(), 32);
}

TEST_F(OpenAiApi, WhatCannotBeEmbeddedIsRefusedByField) {
  const auto refused = [&](const std::string& body) {
    const auto response = ask("/v1/embeddings", body);
    EXPECT_EQ(response.status, 400) << body;
    return json::parse(response.body)["error"]["param"];
  };
  EXPECT_EQ(refused("{}"), "input");
  EXPECT_EQ(refused(R"({"input": ""})"), "input");
  EXPECT_EQ(refused(R"({"input": []})"), "input");
  EXPECT_EQ(refused(R"({"input": [9999]})"), "input");
  EXPECT_EQ(refused(R"({"input": ["a", 5]})"), "input[1]");
  EXPECT_EQ(refused(R"({"input": "a", "encoding_format": "int8"})"), "encoding_format");
  EXPECT_EQ(refused(R"({"input": "a", "dimensions": 5})"), "dimensions");
  EXPECT_EQ(refused(R"({"input": "a", "dimensions": 0})"), "dimensions");
  EXPECT_EQ(refused(R"({"input": ")" + std::string(101, 'x') + "\"}"), "input");
  EXPECT_EQ(ask("/v1/embeddings", R"({"input": ")" + std::string(100, 'x') + "\"}").status, 200);
  EXPECT_EQ(ask("/v1/embeddings", R"({"input": "a", "model": "other"})").status, 404);
  model_.pooling.reset();
  EXPECT_EQ(refused(R"({"input": "a"})"), "model");
}

TEST_F(OpenAiApi, AClientThatLeavesAbortsItsEmbeddings) {
  generator_.never_ends = true;
  const auto exchange = send("/v1/embeddings", R"({"input": ["a", "b", "c"]})");
  while (generator_.requests().size() < 3) std::this_thread::yield();
  exchange->disconnect();
  while (!host_->idle()) std::this_thread::yield();
  EXPECT_EQ(generator_.num_aborts(), 3);
}

TEST_F(OpenAiApi, AnEmbeddingThatFailsIsAnError) {
  generator_.answer = [](const core::Request&) { return answer_events("", core::FinishReason::kError); };
  EXPECT_EQ(ask("/v1/embeddings", R"({"input": ["a", "b"]})").status, 500);
  generator_.refusal = Error{ErrorCode::kExhausted, "the queue is full", ""};
  EXPECT_EQ(ask("/v1/embeddings", R"({"input": ["a", "b"]})").status, 429);
}

TEST_F(OpenAiApi, TheTokenizersSettingsHaveHuggingFacesNames) {
  const json info = json::parse(ask("/tokenizer_info", "", "GET").body);
  EXPECT_EQ(info["eos_token"], "<end>");
  EXPECT_EQ(info["chat_template"], model_.text.chat_template->source());
  EXPECT_EQ(info["model_max_length"], 100);
  EXPECT_EQ(info["add_bos_token"], false);
  EXPECT_TRUE(info["tokenizer_class"].is_string());
}

TEST_F(OpenAiApi, ModelsAreListed) {
  const json list = json::parse(ask("/v1/models", "", "GET").body);
  EXPECT_EQ(list["object"], "list");
  EXPECT_EQ(list["data"][0]["id"], "test");
  EXPECT_EQ(list["data"][1]["id"], "alias");
  EXPECT_EQ(list["data"][0]["max_model_len"], 100);
  EXPECT_EQ(json::parse(ask("/v1/models/alias", "", "GET").body)["id"], "alias");
  EXPECT_EQ(ask("/v1/models/other", "", "GET").status, 404);
}

TEST_F(OpenAiApi, TextBecomesTokensAndBack) {
  json tokens = json::parse(ask("/tokenize", R"({"prompt": "ab", "return_token_strs": true})").body);
  EXPECT_EQ(tokens["tokens"], json({97, 98}));
  EXPECT_EQ(tokens["count"], 2);
  EXPECT_EQ(tokens["max_model_len"], 100);
  EXPECT_EQ(tokens["token_strs"], json({"a", "b"}));
  EXPECT_EQ(json::parse(ask("/tokenize", R"({"content": "ab"})").body)["tokens"], json({97, 98}));
  tokens = json::parse(ask("/tokenize", chat_body()).body);
  EXPECT_EQ(tokens["count"], std::string("user: hi\nassistant: ").size());
  EXPECT_EQ(json::parse(ask("/detokenize", R"({"tokens": [97, 98]})").body)["prompt"], "ab");
  EXPECT_EQ(ask("/detokenize", R"({"tokens": "x"})").status, 400);
}

TEST_F(OpenAiApi, MetricsHaveVllmsNames) {
  complete(R"({"prompt": "a"})");
  ask("/v1/completions", "{");
  const std::string text = ask("/metrics", "", "GET").body;
  for (const char* line :
       {"vllm:num_requests_running{model_name=\"test\"} 0",
        "vllm:generation_tokens_total{model_name=\"test\"} 5",
        "vllm:prompt_tokens_total{model_name=\"test\"} 1", "vllm:time_to_first_token_seconds_count",
        "vllm:request_success_total{finished_reason=\"stop\",model_name=\"test\"} 1",
        "tercet:http_connections{model_name=\"test\"} 3",
        "tercet:requests_refused_total{model_name=\"test\",status=\"400\"} 1"})
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_EQ(json::parse(ask("/version", "", "GET").body)["version"], "1.2.3");
}

}  // namespace
}  // namespace tercet::server
