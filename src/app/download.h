// Downloads over HTTP that survive interruptions: what has arrived stays in PATH.part, broken connections are
// retried, and the file gets its name only when its size and SHA-256 are right.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace tercet::app {

struct Download {
  std::string url;
  std::string path;
  std::string label;  // for progress
  std::string token;  // sent as a bearer token, to the url's own host only; "" for none
  std::string
      sha256;  // 64 hexadecimal digits; "": take the server's X-Linked-ETag or ETag, if it is a SHA-256
  int max_attempts = 5;                         // in a row without a byte of progress
  std::chrono::milliseconds retry_delay{1000};  // doubles with each attempt
};

struct Downloaded {
  uint64_t bytes = 0;
  std::string sha256;
  bool verified = false;  // against an expected SHA-256; false when nobody knew one
};

Result<Downloaded> download(const Download& request);

// The body of a small document. kExhausted when it is larger than `max_bytes`.
Result<std::string> http_get(const std::string& url, const std::string& token, size_t max_bytes);

}  // namespace tercet::app
