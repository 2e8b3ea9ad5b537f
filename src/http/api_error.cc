#include "http/api_error.h"

#include <nlohmann/json.hpp>

namespace tercet::http {

ApiError api_error(const Error& error) {
  ApiError result;
  result.message = error.to_string();
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kUnsupported: result.param = error.where; break;
    case ErrorCode::kNotFound: result.status = 404; break;
    case ErrorCode::kExhausted:
      result.status = 429;
      result.type = "rate_limit_error";
      result.code = "rate_limit_exceeded";
      result.retry_after = 1;
      break;
    case ErrorCode::kCancelled:
      result.status = 503;
      result.type = "server_error";
      result.code = "service_unavailable";
      result.retry_after = 1;
      break;
    default: result.status = 500; result.type = "server_error";
  }
  return result;
}

std::string error_body(const ApiError& error) {
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
  };
  nlohmann::ordered_json body;
  body["error"] = {{"message", error.message},
                   {"type", error.type},
                   {"param", or_null(error.param)},
                   {"code", or_null(error.code)}};
  // A message may quote bytes of the request that are no UTF-8.
  return body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Response error_response(const ApiError& error) {
  Response response;
  response.status = error.status;
  response.body = error_body(error);
  if (error.retry_after > 0) response.headers.emplace_back("Retry-After", std::to_string(error.retry_after));
  return response;
}

}  // namespace tercet::http
