// A generation request on its way through the server: it is handed to the engine as one request for each
// prompt and choice, and their events become the body or the stream of the answer.
#pragma once

#include <memory>

#include "http/message.h"
#include "server/engine_host.h"
#include "server/metrics.h"
#include "server/openai_request.h"
#include "server/served_model.h"

namespace tercet::server {

// Answers `exchange`, now or later. A client that goes away aborts what runs for it. The references outlive
// the answer.
void start_generation(std::shared_ptr<http::Exchange> exchange, EngineHost& host, Metrics& metrics,
                      const ServedModel& model, GenerationRequest request,
                      std::vector<std::vector<core::TokenId>> prompts);

}  // namespace tercet::server
