// Server: HTTP/1.1 on a TCP port, with TLS if wanted. One thread serves all connections; handlers run on a
// few others, so that a long one holds up nobody's stream. Connections stay open between requests; what a
// client sends, and how long it takes, is bounded.
//
// The methods may be called from any thread but the server's own.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "http/message.h"

namespace tercet::http {

struct ServerOptions {
  std::string host = "127.0.0.1";  // a numeric address; "0.0.0.0" or "::" for all
  uint16_t port = 8080;            // 0: one that is free
  std::string tls_cert;            // PEM files, both or none
  std::string tls_key;
  std::vector<std::string> cors_origins;  // whose pages a browser lets in; "*": everybody's
  int num_handler_threads = 2;

  uint32_t max_header_bytes = 64 << 10;
  uint64_t max_body_bytes = 16 << 20;
  int max_connections = 1024;
  size_t max_pending_bytes = 1 << 20;                // of a stream that its client is slow to read
  std::chrono::milliseconds header_timeout{60'000};  // idle time between requests included
  std::chrono::milliseconds body_timeout{60'000};
  std::chrono::milliseconds write_timeout{60'000};  // until a client that does not read is dropped
};

class Server {
 public:
  // Listens and serves when it returns. Errors name the address or file.
  static Result<std::unique_ptr<Server>> start(ServerOptions options, Handler handler);
  // Closes every connection.
  ~Server();

  uint16_t port() const;
  int num_connections() const;

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tercet::http
