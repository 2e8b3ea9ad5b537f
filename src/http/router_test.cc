#include "http/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/test_exchange.h"

namespace tercet::http {
namespace {

Response ask(const Handler& handler, std::string method, std::string path, Headers headers = {}) {
  const auto exchange =
      std::make_shared<TestExchange>(Request{std::move(method), std::move(path), std::move(headers), ""});
  handler(exchange);
  return exchange->wait().value();
}

Handler answer(std::string text) {
  return [text](const std::shared_ptr<Exchange>& exchange) { exchange->respond({200, "", {}, text}); };
}

TEST(Router, FindsTheRouteOfMethodAndPath) {
  const Handler handler = route(
      {{"GET", "/a", answer("get a")}, {"POST", "/a", answer("post a")}, {"GET", "/b/*", answer("b")}}, {});
  EXPECT_EQ(ask(handler, "GET", "/a").body, "get a");
  EXPECT_EQ(ask(handler, "HEAD", "/a").body, "get a");
  EXPECT_EQ(ask(handler, "POST", "/a").body, "post a");
  EXPECT_EQ(ask(handler, "GET", "/b/c/d").body, "b");
  EXPECT_EQ(ask(handler, "GET", "/b").status, 404);
  const Response wrong_method = ask(handler, "DELETE", "/a");
  EXPECT_EQ(wrong_method.status, 405);
  EXPECT_THAT(wrong_method.headers, testing::Contains(testing::Pair("Allow", "GET, POST")));
  EXPECT_THAT(ask(handler, "GET", "/c").body, testing::HasSubstr("invalid_request_error"));
}

TEST(Router, AKeyLetsInWhoKnowsIt) {
  const Handler handler =
      route({{"GET", "/a", answer("in")}, {"GET", "/health", answer("ok"), true}}, {"secret", "other"});
  EXPECT_EQ(ask(handler, "GET", "/a").status, 401);
  EXPECT_THAT(ask(handler, "GET", "/a").body, testing::HasSubstr("invalid_api_key"));
  EXPECT_EQ(ask(handler, "GET", "/a", {{"authorization", "Bearer secret"}}).body, "in");
  EXPECT_EQ(ask(handler, "GET", "/a", {{"authorization", "bearer other"}}).body, "in");
  EXPECT_EQ(ask(handler, "GET", "/a", {{"x-api-key", "secret"}}).body, "in");
  EXPECT_EQ(ask(handler, "GET", "/a", {{"api-key", "secret"}}).body, "in");
  for (const char* wrong : {"Bearer secre", "Bearer secrets", "Bearer ", "secret", "Basic secret"})
    EXPECT_EQ(ask(handler, "GET", "/a", {{"authorization", wrong}}).status, 401) << wrong;
  EXPECT_EQ(ask(handler, "GET", "/health").body, "ok");
}

}  // namespace
}  // namespace tercet::http
