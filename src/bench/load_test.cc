#include "bench/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>

#include "http/server.h"

namespace tercet::bench {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(Quantiles, AreValuesThatOccurred) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  const Quantiles hundred = quantiles(values);
  EXPECT_EQ(hundred.mean, 50.5);
  EXPECT_EQ(hundred.p50, 50);
  EXPECT_EQ(hundred.p90, 90);
  EXPECT_EQ(hundred.p95, 95);
  EXPECT_EQ(hundred.p99, 99);
  EXPECT_EQ(quantiles({7}).p50, 7);
  EXPECT_EQ(quantiles({7, 3}).p50, 3);
  EXPECT_EQ(quantiles({7, 3}).p90, 7);
  EXPECT_EQ(quantiles({}).p99, 0);
}

LoadRecord answer(double start, double first_token, double end, int new_tokens) {
  LoadRecord record;
  record.start = start;
  record.first_token = first_token;
  record.end = end;
  record.prompt_tokens = 10;
  record.new_tokens = new_tokens;
  record.ended = true;
  return record;
}

TEST(LoadSummary, CountsAsGoodWhatKeepsToBothObjectives) {
  LoadResult result;
  result.records = {answer(1, 1.5, 2.5, 11),    // 0.5 s, then 0.1 s a token
                    answer(1, 1.75, 2.75, 11),  // 0.75 s, 0.1 s
                    answer(2, 2.25, 4.25, 11),  // 0.25 s, 0.2 s
                    answer(2, 2.5, 2.5, 1)};    // 0.5 s, no further token
  LoadRecord failed = answer(1, 1.1, 1.2, 5), unfinished;
  failed.error = "429: full";
  result.records.push_back(failed);
  result.records.push_back(unfinished);
  EXPECT_EQ(summarize(result, {}).num_good, 4);
  EXPECT_EQ(summarize(result, {0.5, 0}).num_good, 3);
  EXPECT_EQ(summarize(result, {0, 0.15}).num_good, 3);
  const LoadSummary summary = summarize(result, {0.5, 0.15});
  EXPECT_EQ(summary.num_good, 2);
  EXPECT_EQ(summary.num_completed, 4);
  EXPECT_EQ(summary.num_unfinished, 1);
  EXPECT_THAT(summary.errors, ElementsAre(Pair("429: full", 1)));
  EXPECT_EQ(summary.new_tokens, 34);
  EXPECT_EQ(summary.prompt_tokens, 40);
  EXPECT_EQ(summary.first_token.p99, 0.75);
  EXPECT_DOUBLE_EQ(summary.per_token.p99, 0.2);
  EXPECT_EQ(summary.whole.p50, 1.5);
}

TEST(Load, ArrivesIndependently) {
  const auto requests = poisson_requests(20'000, 50, 7, 3);
  double sum = 0, squares = 0;
  for (size_t i = 1; i < requests.size(); ++i) {
    const double gap = requests[i].start - requests[i - 1].start;
    ASSERT_GE(gap, 0);
    sum += gap, squares += gap * gap;
  }
  const double n = 19'999, mean = sum / n;
  EXPECT_NEAR(mean, 1.0 / 50, 0.001);
  EXPECT_NEAR(std::sqrt(squares / n - mean * mean), mean, 0.001);  // an exponential distribution's
  EXPECT_EQ(requests[0].start, 0);
  EXPECT_EQ(requests[5].new_tokens, 7);
  EXPECT_EQ(poisson_requests(10, 50, 7, 3)[9].start, requests[9].start);
  EXPECT_NE(poisson_requests(10, 50, 7, 4)[9].start, requests[9].start);
}

// An OpenAI server in small. What a prompt's first token is decides how it is answered.
class Api {
 public:
  enum Behaviour { kAnswer = 1000, kRefuse, kBreakOff, kFail, kNoEnd };

  Api() {
    http::ServerOptions options;
    options.port = 0;
    auto server = http::Server::start(options, [this](const auto& exchange) { handle(exchange); });
    EXPECT_TRUE(server.ok());
    server_ = *std::move(server);
  }
  LoadTarget target() const {
    LoadTarget target;
    target.origin.port = server_->port();
    target.origin.host = "127.0.0.1";
    target.api_key = "secret";
    return target;
  }
  Json request(size_t index) {
    const std::lock_guard lock(mutex_);
    return requests_.at(index);
  }

 private:
  static std::string event(const Json& object) { return "data: " + object.dump() + "\r\n\r\n"; }

  void handle(const std::shared_ptr<http::Exchange>& exchange) {
    EXPECT_EQ(exchange->request().header("authorization"), "Bearer secret");
    if (exchange->request().path == "/v1/models")
      return exchange->respond({200, "application/json", {}, R"({"data": [{"id": "tiny"}, {"id": "b"}]})"});
    const Json body = Json::parse(exchange->request().body);
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(body);
    }
    const int behaviour = body["prompt"][0].get<int>();
    if (behaviour == kRefuse) {
      return exchange->respond(
          {429, "application/json", {}, R"({"error": {"message": "the queue is full"}})"});
    }
    exchange->start({200, "text/event-stream", {}, ""});
    exchange->send(event({{"choices", {{{"text", ""}}}}}));  // no token yet
    if (behaviour == kFail) {
      exchange->send(event({{"error", {{"message", "out of memory"}}}}));
      return exchange->finish();
    }
    const int count = body["max_tokens"];
    for (int i = 0; i < count; ++i) exchange->send(event({{"choices", {{{"text", "x"}}}}}));
    if (behaviour == kNoEnd) return exchange->finish();
    exchange->send(event({{"choices", Json::array()},
                          {"usage",
                           {{"prompt_tokens", body["prompt"].size()},
                            {"completion_tokens", count},
                            {"prompt_tokens_details", {{"cached_tokens", 1}}}}}}));
    exchange->send("data: [DO");
    exchange->send("NE]\n\n");
    exchange->finish();
  }

  std::mutex mutex_;
  std::vector<Json> requests_;
  std::unique_ptr<http::Server> server_;
};

bool for_ever(const LoadProgress&) { return true; }

LoadPlan plan_of(std::vector<int32_t> behaviours, int clients) {
  LoadPlan plan;
  plan.requests.assign(behaviours.size(), {0, 5});
  plan.clients = clients;
  plan.prompt = [=](size_t index) { return std::vector<int32_t>{behaviours[index], 300, 301}; };
  return plan;
}

TEST(Load, AsksAndCountsAsTheServerAnswers) {
  Api api;
  const auto result =
      run_load(api.target(), plan_of({Api::kAnswer, Api::kAnswer, Api::kAnswer}, 2), for_ever);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(result->model, "tiny");
  ASSERT_EQ(result->records.size(), 3u);
  for (const LoadRecord& record : result->records) {
    EXPECT_EQ(record.error, "");
    EXPECT_EQ(record.prompt_tokens, 3);
    EXPECT_EQ(record.cached_tokens, 1);
    EXPECT_EQ(record.new_tokens, 5);
    EXPECT_EQ(record.gaps.size(), 4u);
    EXPECT_LT(record.start, record.first_token);
    EXPECT_LE(record.first_token, record.end);
    EXPECT_LE(record.end, result->seconds);
  }
  const Json expected = Json::parse(R"({"model": "tiny", "prompt": [1000, 300, 301], "max_tokens": 5,
      "temperature": 0, "ignore_eos": true, "stream": true, "stream_options": {"include_usage": true}})");
  EXPECT_EQ(api.request(0), expected);
}

TEST(Load, CountsErrorsByKind) {
  Api api;
  const auto result =
      run_load(api.target(), plan_of({Api::kRefuse, Api::kAnswer, Api::kFail, Api::kNoEnd, Api::kRefuse}, 3),
               for_ever);
  ASSERT_TRUE(result.ok());
  const LoadSummary summary = summarize(*result, {});
  EXPECT_EQ(summary.num_completed, 1);
  EXPECT_THAT(summary.errors,
              ElementsAre(Pair("429: the queue is full", 2), Pair("a stream without [DONE]", 1),
                          Pair("in a stream: out of memory", 1)));
}

TEST(Load, AClosedLoopHasSoManyClients) {
  Api api;
  const auto result = run_load(api.target(), plan_of(std::vector<int32_t>(40, Api::kAnswer), 3), for_ever);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(summarize(*result, {}).num_completed, 40);
  int64_t most = 0;  // at the start of any request
  for (const LoadRecord& record : result->records) {
    most = std::max<int64_t>(most, std::ranges::count_if(result->records, [&](const LoadRecord& other) {
                               return other.start <= record.start && record.start < other.end;
                             }));
  }
  EXPECT_EQ(most, 3);
}

TEST(Load, AnOpenLoopSendsByTimeInTheOrderOfThePlan) {
  Api api;
  LoadPlan plan = plan_of(std::vector<int32_t>(20, Api::kAnswer), 0);
  for (size_t i = 0; i < plan.requests.size(); ++i)
    plan.requests[i].start = static_cast<double>(i / 5) * 0.03;
  const auto result = run_load(api.target(), plan, for_ever);
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->records.size(), 20u);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(result->records[i].start, plan.requests[i].start);
    EXPECT_GT(result->records[i].first_token, plan.requests[i].start);
  }
}

TEST(Load, StopsWhenToldAndKeepsWhatItHas) {
  Api api;
  LoadPlan plan = plan_of({Api::kAnswer, Api::kAnswer}, 0);
  plan.requests[1].start = 3600;
  const auto result = run_load(api.target(), plan, [](const LoadProgress& now) { return now.num_ended < 1; });
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->records.size(), 1u);
  EXPECT_TRUE(result->records[0].completed());
}

TEST(Load, WithoutAServerItSaysSo) {
  LoadTarget target;
  {
    const Api api;
    target = api.target();
  }
  const auto result = run_load(target, plan_of({1}, 1), for_ever);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().to_string(), HasSubstr("/v1/models: cannot connect"));
}

}  // namespace
}  // namespace tercet::bench
