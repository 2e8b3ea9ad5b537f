// Requests and responses as a handler sees them, and Exchange: one request with the way to answer it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tercet::http {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string method;
  std::string path;  // percent-decoded, without query, doubled slashes and a slash at the end
  Headers headers;   // names in lower case
  std::string body;

  // The first header of this lower-case name, or "".
  std::string_view header(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  Headers headers;
  std::string body;
};

// The path of a request's target ("/v1//models/?limit=3" is "/v1/models").
std::string normalized_path(std::string_view target);

// Any thread may call any method, in any order: what makes no sense any more, as data for a client that has
// gone, is ignored. An exchange must not be used once its server is destroyed.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const Request& request() const = 0;

  // Runs `task` on the thread that serves connections, where tasks run one at a time, in the order in which
  // they were posted. It must be short.
  virtual void post(std::function<void()> task) = 0;

  // The whole answer.
  virtual void respond(Response response) = 0;

  // Or an answer in parts: start(), send() any number of times, finish(). What the client is slow to take is
  // kept up to a limit; beyond it the connection is dropped.
  virtual void start(Response head) = 0;
  virtual void send(std::string data) = 0;
  virtual void finish() = 0;

  // Runs `task` on the same thread if the connection ends before the answer did.
  virtual void on_disconnect(std::function<void()> task) = 0;
};

using Handler = std::function<void(std::shared_ptr<Exchange>)>;

}  // namespace tercet::http
