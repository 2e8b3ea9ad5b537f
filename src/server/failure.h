// Why a request that the engine took did not get its answer.
#pragma once

#include <optional>

#include "core/types.h"
#include "http/api_error.h"
#include "server/engine_host.h"

namespace tercet::server {

// Nothing, unless `event` says that its request failed or was aborted.
inline std::optional<http::ApiError> failure(const core::TokenEvent& event, const EngineHost& host) {
  const bool aborted = event.finish == core::FinishReason::kAborted;
  if (!aborted && event.finish != core::FinishReason::kError) return std::nullopt;
  return http::api_error({aborted || host.draining() ? ErrorCode::kCancelled : ErrorCode::kInternal,
                          aborted ? "the request was aborted" : event.error, ""});
}

}  // namespace tercet::server
