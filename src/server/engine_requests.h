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

// Submits requests together. Their events are handed over on the exchange's thread, with the request's index.
// Returns their ids.
inline std::vector<uint64_t> submit_for(
    const std::shared_ptr<http::Exchange>& exchange, EngineHost& host, std::vector<core::Request> requests,
    const std::function<void(size_t index, Result<std::vector<core::TokenEvent>>)>& on_events) {
  std::vector<Submission> submissions;
  for (core::Request& request : requests) {
    const size_t index = submissions.size();
    submissions.push_back(
        {std::move(request), [exchange, on_events, index](Result<std::vector<core::TokenEvent>> events) {
           exchange->post([on_events, index, events = std::move(events)]() mutable {
             on_events(index, std::move(events));
           });
         }});
  }
  return host.submit(std::move(submissions));
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
