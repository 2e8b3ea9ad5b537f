// Client: many HTTP/1.1 requests at once from one thread, each on a connection of its own, with their answers
// in parts as they arrive.
//
// For one thread, on which run() calls everything back.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/message.h"

namespace tercet::http {

struct Origin {
  bool tls = false;  // the certificate must be one that OpenSSL trusts (SSL_CERT_FILE)
  std::string host;
  uint16_t port = 80;
};

// What comes of one request: a head, parts of the body, the end. Only the end is certain: with an error when
// there was no whole answer.
struct Reply {
  std::function<void(int status)> on_head;
  std::function<void(std::string_view data)> on_data;
  std::function<void(Status)> on_end;
};

class Client {
 public:
  using Clock = std::chrono::steady_clock;

  // A request that takes longer than `timeout` fails.
  Client(Origin origin, std::chrono::milliseconds timeout);
  // Drops what has not ended, without a word to its Reply.
  ~Client();

  // Of the request: method, path (sent as it is), headers and body.
  void send(Request request, Reply reply);
  void call_at(Clock::time_point when, std::function<void()> task);

  // Until every request has ended and nothing is left to call, or stop().
  void run();
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tercet::http
