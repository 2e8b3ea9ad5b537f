#include "http/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "http/server.h"

namespace tercet::http {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Answer {
  int status = 0;
  std::string body;
  std::vector<std::string> parts;
  std::string error;
  bool ended = false;
};

Reply into(Answer& answer) {
  return {[&](int status) { answer.status = status; },
          [&](std::string_view data) {
            answer.body += data;
            answer.parts.emplace_back(data);
          },
          [&](const Status& status) {
            answer.ended = true;
            if (!status.ok()) answer.error = status.error().message;
          }};
}

std::unique_ptr<Server> start(Handler handler) {
  ServerOptions options;
  options.port = 0;
  auto server = Server::start(options, std::move(handler));
  EXPECT_TRUE(server.ok()) << server.error().to_string();
  return *std::move(server);
}

Request post(std::string body) { return {"POST", "/echo", {{"X-Name", "value"}}, std::move(body)}; }

TEST(Client, AsksManyAtOnce) {
  const auto server = start([](const std::shared_ptr<Exchange>& exchange) {
    const Request& request = exchange->request();
    exchange->respond({201, "text/plain", {}, std::string(request.header("x-name")) + request.body});
  });
  Client client({false, "127.0.0.1", server->port()}, std::chrono::seconds(20));
  std::vector<Answer> answers(50);
  for (size_t i = 0; i < answers.size(); ++i) client.send(post(std::to_string(i)), into(answers[i]));
  client.run();
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].error, "");
    EXPECT_EQ(answers[i].status, 201);
    EXPECT_EQ(answers[i].body, "value" + std::to_string(i));
  }
}

TEST(Client, ShowsAStreamsPartsAsTheyArrive) {
  std::promise<std::shared_ptr<Exchange>> open;
  const auto server = start([&](const std::shared_ptr<Exchange>& exchange) {
    open.set_value(exchange);
    exchange->start({});
    exchange->send("one");
  });
  Client client({false, "localhost", server->port()}, std::chrono::seconds(20));
  Answer answer;
  Reply reply = into(answer);
  // The second part is sent when the first has been seen.
  reply.on_data = [&, keep = reply.on_data](std::string_view data) {
    keep(data);
    if (answer.parts.size() > 1) return;
    const auto exchange = open.get_future().get();
    exchange->send("two");
    exchange->finish();
  };
  client.send(post(""), std::move(reply));
  client.run();
  EXPECT_EQ(answer.body, "onetwo");
  EXPECT_EQ(answer.parts.front(), "one");
  EXPECT_EQ(answer.error, "");
}

TEST(Client, SaysWhatWentWrong) {
  std::promise<std::shared_ptr<Exchange>> open;
  auto server = start([&](const std::shared_ptr<Exchange>& exchange) { open.set_value(exchange); });
  const uint16_t port = server->port();
  Answer late, refused, unknown;
  {
    Client client({false, "127.0.0.1", port}, std::chrono::milliseconds(100));
    client.send(post(""), into(late));
    client.run();
  }
  open.get_future().get().reset();
  server.reset();
  Client client({false, "127.0.0.1", port}, std::chrono::seconds(20));
  client.send(post(""), into(refused));
  client.run();
  Client nobody({false, "no-such-host.invalid", port}, std::chrono::seconds(20));
  nobody.send(post(""), into(unknown));
  nobody.run();
  EXPECT_THAT(late.error, HasSubstr("no whole answer within"));
  EXPECT_THAT(refused.error, HasSubstr("cannot connect: Connection refused"));
  EXPECT_THAT(unknown.error, HasSubstr("cannot resolve the host"));
  EXPECT_TRUE(late.ended && refused.ended && unknown.ended);
}

TEST(Client, CallsInOrderOfTimeAndStops) {
  Client client({false, "127.0.0.1", 1}, std::chrono::seconds(20));
  std::vector<int> order;
  const auto now = Client::Clock::now();
  client.call_at(now + std::chrono::milliseconds(20), [&] {
    order.push_back(2);
    client.stop();
  });
  client.call_at(now, [&] { order.push_back(1); });
  client.call_at(now + std::chrono::hours(1), [&] { order.push_back(3); });
  client.run();
  EXPECT_THAT(order, ElementsAre(1, 2));
}

}  // namespace
}  // namespace tercet::http
