// Between an exchange and the requests that the engine runs for it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/types.h"
#include "http/api_error.h"
#include "http/message.h"
#include "server/engine_host.h"

namespace tercet::server {

// Submits a request whose events are handed over on the exchange's thread. Returns its id.
inline uint64_t submit_for(const std::shared_ptr<http::Exchange>& exchange, EngineHost& host,
                           core::Request request,
                           std::function<void(Result<std::vector<core::TokenEvent>>)> on_events) {
  return host.submit(std::move(request), [exchange, on_events = std::move(on_events)](
                                             Result<std::vector<core::TokenEvent>> events) {
    exchange->post([on_events, events = std::move(events)]() mutable { on_events(std::move(events)); });
  });
}

// Why the engine did not answer a request. Nothing, unless `event` says that its request failed or was
// aborted.
inline std::optional<http::ApiError> failure(const core::TokenEvent& event, const EngineHost& host) {
  const bool aborted = event.finish == core::FinishReason::kAborted;
  if (!aborted && event.finish != core::FinishReason::kError) return std::nullopt;
  return http::api_error({aborted || host.draining() ? ErrorCode::kCancelled : ErrorCode::kInternal,
                          aborted ? "the request was aborted" : event.error, ""});
}

}  // namespace tercet::server
