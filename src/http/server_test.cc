#include "http/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "http/router.h"
#include "http/test_client.h"

namespace tercet::http {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A place where the server's threads leave word.
class Signal {
 public:
  void set() {
    const std::lock_guard lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [this] { return set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

Response text_response(std::string text) { return {200, "text/plain", {}, std::move(text)}; }

std::unique_ptr<Server> start(ServerOptions options, Handler handler) {
  options.port = 0;
  auto server = Server::start(std::move(options), std::move(handler));
  EXPECT_TRUE(server.ok()) << server.error().to_string();
  return *std::move(server);
}

Handler echo() {
  return [](const std::shared_ptr<Exchange>& exchange) {
    const Request& request = exchange->request();
    exchange->respond(text_response(request.method + " " + request.path + " " + request.body));
  };
}

TEST(Server, AConnectionServesManyRequests) {
  const auto server = start({}, echo());
  TestClient client(server->port());
  ASSERT_TRUE(client.send("GET //a/ HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_THAT(client.read_response(), testing::AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("GET /a ")));
  // Two at once, the second early.
  ASSERT_TRUE(client.send(
      "POST /b HTTP/1.1\r\nContent-Length: 2\r\n\r\nhiPOST /c HTTP/1.1\r\nContent-Length: 3\r\n\r\nyou"));
  EXPECT_THAT(client.read_response(), HasSubstr("POST /b hi"));
  EXPECT_THAT(client.read_response(), HasSubstr("POST /c you"));
  ASSERT_TRUE(client.send("GET /d HTTP/1.1\r\nConnection: close\r\n\r\n"));
  EXPECT_THAT(client.read_response(), HasSubstr("GET /d"));
  EXPECT_TRUE(client.read_to_end());
}

TEST(Server, AChunkedBodyAndExpectContinueAreUnderstood) {
  const auto server = start({}, echo());
  TestClient client(server->port());
  ASSERT_TRUE(client.send("POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"));
  ASSERT_TRUE(client.read_until("100 Continue\r\n\r\n"));
  client.received.clear();
  ASSERT_TRUE(client.send("2\r\nhi\r\n3\r\n, u\r\n0\r\n\r\n"));
  EXPECT_THAT(client.read_response(), HasSubstr("POST /a hi, u"));
}

TEST(Server, WhatIsTooLargeOrNoHttpIsRefusedAndTheConnectionEnds) {
  ServerOptions options;
  options.max_header_bytes = 1024;
  options.max_body_bytes = 2048;
  const auto server = start(options, echo());
  const std::pair<std::string, const char*> cases[] = {
      {"GET / HTTP/1.1\r\nX: " + std::string(5000, 'x') + "\r\n\r\n", "HTTP/1.1 431"},
      {"POST / HTTP/1.1\r\nContent-Length: 4000\r\n\r\n" + std::string(4000, 'x'), "HTTP/1.1 413"},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFF\r\n" + std::string(4000, 'x'),
       "HTTP/1.1 413"},
      {"POST / HTTP/1.1\r\nContent-Length: -4\r\n\r\n", "HTTP/1.1 400"},
      {"POST / HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd", "HTTP/1.1 400"},
      {"nonsense\r\n\r\n", "HTTP/1.1 400"},
      {std::string("\0\1\2\3\r\n\r\n", 8), "HTTP/1.1 400"},
  };
  for (const auto& [request, status] : cases) {
    TestClient client(server->port());
    client.send(request);
    EXPECT_TRUE(client.read_to_end()) << request.substr(0, 60);
    EXPECT_THAT(client.received, StartsWith(status)) << request.substr(0, 60);
    EXPECT_THAT(client.received, HasSubstr("\"error\"")) << request.substr(0, 60);
  }
  TestClient after(server->port());
  ASSERT_TRUE(after.send("GET /a HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(after.read_response(), HasSubstr("GET /a"));
}

TEST(Server, AClientThatSendsTooSlowlyIsDropped) {
  ServerOptions options;
  options.header_timeout = options.body_timeout = std::chrono::milliseconds(50);
  const auto server = start(options, echo());
  TestClient silent(server->port()), half(server->port()), no_body(server->port());
  half.send("GET / HT");
  no_body.send("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nhi");
  for (TestClient* client : {&silent, &half, &no_body}) EXPECT_TRUE(client->read_to_end());
}

TEST(Server, MoreConnectionsThanAllowedAreRefused) {
  ServerOptions options;
  options.max_connections = 1;
  const auto server = start(options, echo());
  TestClient first(server->port());
  ASSERT_TRUE(first.send("GET /a HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(first.read_response(), HasSubstr("GET /a"));
  TestClient second(server->port());
  EXPECT_TRUE(second.read_to_end());
  EXPECT_THAT(second.received, testing::AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("Retry-After: 1")));
}

TEST(Server, AStreamComesInPartsAsTheyAreSent) {
  std::shared_ptr<Exchange> held;
  Signal arrived;
  const auto server = start({}, [&](std::shared_ptr<Exchange> exchange) {
    held = std::move(exchange);
    arrived.set();
  });
  TestClient client(server->port());
  ASSERT_TRUE(client.send("GET / HTTP/1.1\r\n\r\n"));
  ASSERT_TRUE(arrived.wait());
  held->start({200, "text/event-stream", {}, ""});
  EXPECT_TRUE(client.read_until("Transfer-Encoding: chunked\r\n\r\n"));
  held->send("one");
  EXPECT_TRUE(client.read_until("3\r\none\r\n"));
  held->send("three");
  EXPECT_TRUE(client.read_until("5\r\nthree\r\n"));
  held->finish();
  EXPECT_TRUE(client.read_until("0\r\n\r\n"));
  held.reset();
}

TEST(Server, AnOldClientGetsAStreamThatEndsWithTheConnection) {
  const auto server = start({}, [](const std::shared_ptr<Exchange>& exchange) {
    exchange->start({200, "text/event-stream", {}, ""});
    exchange->send("data");
    exchange->finish();
  });
  TestClient client(server->port());
  ASSERT_TRUE(client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
  EXPECT_TRUE(client.read_to_end());
  EXPECT_THAT(client.received, testing::AllOf(testing::EndsWith("\r\n\r\ndata"), Not(HasSubstr("chunked"))));
}

TEST(Server, AClientThatGoesAwayIsNoticedWhileItsAnswerIsBeingMade) {
  for (const bool streams : {false, true}) {
    Signal arrived, left;
    std::shared_ptr<Exchange> held;
    const auto server = start({}, [&](std::shared_ptr<Exchange> exchange) {
      held = std::move(exchange);
      held->on_disconnect([&] { left.set(); });
      if (streams) held->start({200, "text/event-stream", {}, ""});
      arrived.set();
    });
    TestClient client(server->port());
    ASSERT_TRUE(client.send("GET / HTTP/1.1\r\n\r\n"));
    ASSERT_TRUE(arrived.wait());
    client.close();
    EXPECT_TRUE(left.wait());
    held->send("ignored");
    held->respond(text_response("ignored"));
    held.reset();
  }
}

TEST(Server, AnAnswerThatWasReceivedIsNoDisconnect) {
  std::atomic<bool> left = false;
  const auto server = start({}, [&](const std::shared_ptr<Exchange>& exchange) {
    exchange->on_disconnect([&] { left = true; });
    exchange->respond(text_response("done"));
  });
  TestClient client(server->port());
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(client.send("GET / HTTP/1.1\r\n\r\n"));
    EXPECT_THAT(client.read_response(), HasSubstr("done"));
  }
  client.close();
  EXPECT_FALSE(left);
}

TEST(Server, AReaderThatDoesNotReadIsDroppedAndHoldsUpNobody) {
  ServerOptions options;
  options.max_pending_bytes = 100'000;
  Signal left;
  std::shared_ptr<Exchange> held;
  Signal arrived;
  const auto server = start(options, [&](std::shared_ptr<Exchange> exchange) {
    if (exchange->request().path == "/quick") return exchange->respond(text_response("quick"));
    held = std::move(exchange);
    held->on_disconnect([&] { left.set(); });
    held->start({200, "text/event-stream", {}, ""});
    arrived.set();
  });
  TestClient slow(server->port(), 4096), quick(server->port());
  ASSERT_TRUE(slow.send("GET /slow HTTP/1.1\r\n\r\n"));
  ASSERT_TRUE(arrived.wait());
  // More than the kernel's buffers and the limit hold together.
  for (int i = 0; i < 1000; ++i) held->send(std::string(16 << 10, 'x'));
  EXPECT_TRUE(left.wait());
  ASSERT_TRUE(quick.send("GET /quick HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(quick.read_response(), HasSubstr("quick"));
  held.reset();
}

TEST(Server, AReaderThatStopsIsDroppedAfterAWhile) {
  ServerOptions options;
  options.write_timeout = std::chrono::milliseconds(100);
  Signal left;
  const auto server = start(options, [&](const std::shared_ptr<Exchange>& exchange) {
    exchange->on_disconnect([&] { left.set(); });
    exchange->respond(text_response(std::string(64 << 20, 'x')));
  });
  TestClient slow(server->port(), 4096);
  ASSERT_TRUE(slow.send("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(left.wait());
}

TEST(Server, AHandlerThatThrowsIsA500) {
  const auto server =
      start({}, [](const std::shared_ptr<Exchange>&) { throw std::runtime_error("memory is out"); });
  TestClient client(server->port());
  ASSERT_TRUE(client.send("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(client.read_response(), testing::AllOf(StartsWith("HTTP/1.1 500"), HasSubstr("memory is out")));
}

TEST(Server, PagesOfAllowedOriginsMayReadAnswers) {
  ServerOptions options;
  options.cors_origins = {"https://here.example"};
  const auto server = start(options, route({{"GET", "/a", echo()}}, {}));
  TestClient client(server->port());
  ASSERT_TRUE(client.send("OPTIONS /a HTTP/1.1\r\nOrigin: https://here.example\r\n\r\n"));
  EXPECT_THAT(client.read_response(),
              testing::AllOf(StartsWith("HTTP/1.1 204"), HasSubstr("Allow-Origin: https://here.example"),
                             HasSubstr("Access-Control-Allow-Headers")));
  ASSERT_TRUE(client.send("GET /a HTTP/1.1\r\nOrigin: https://here.example\r\n\r\n"));
  EXPECT_THAT(client.read_response(), HasSubstr("Allow-Origin: https://here.example"));
  ASSERT_TRUE(client.send("GET /a HTTP/1.1\r\nOrigin: https://there.example\r\n\r\n"));
  EXPECT_THAT(client.read_response(), Not(HasSubstr("Allow-Origin")));
}

TEST(Server, AnAddressThatIsTakenIsAnError) {
  const auto server = start({}, echo());
  ServerOptions options;
  options.port = server->port();
  const auto second = Server::start(options, echo());
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().to_string(), HasSubstr("cannot listen"));
  options.host = "nowhere.example";
  EXPECT_FALSE(Server::start(options, echo()).ok());
  options = {};
  options.tls_cert = options.tls_key = "/nonexistent.pem";
  EXPECT_THAT(Server::start(options, echo()).error().to_string(), HasSubstr("/nonexistent.pem"));
}

}  // namespace
}  // namespace tercet::http
