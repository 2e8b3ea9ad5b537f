// Errors as clients of the OpenAI API parse them. Pure functions.
#pragma once

#include <string>

#include "base/result.h"
#include "http/message.h"

namespace tercet::http {

struct ApiError {
  int status = 400;
  std::string message;
  std::string type = "invalid_request_error";
  std::string param = {};  // the field at fault; "": none
  std::string code = {};   // "": none
  int retry_after = 0;     // seconds; 0: the header is left out
};

// kInvalidArgument and kUnsupported are the client's fault (400, `where` becomes the param), kNotFound is
// 404, kExhausted 429, kCancelled 503, anything else 500.
ApiError api_error(const Error& error);

// {"error": {"message", "type", "param", "code"}}
std::string error_body(const ApiError& error);
Response error_response(const ApiError& error);

}  // namespace tercet::http
