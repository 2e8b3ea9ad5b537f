// The routes of the OpenAI API over an engine, with those that vLLM and llama.cpp have beside it.
#pragma once

#include <functional>
#include <vector>

#include "http/router.h"
#include "server/engine_host.h"
#include "server/metrics.h"
#include "server/served_model.h"

namespace tercet::server {

// What the handlers work with; it outlives the HTTP server.
struct ApiContext {
  EngineHost& host;
  Metrics& metrics;
  const ServedModel& model;
  std::function<int()> num_connections;
};

std::vector<http::Route> api_routes(const ApiContext& context);

}  // namespace tercet::server
