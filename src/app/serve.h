// `tercet serve`: an OpenAI-compatible server over one model.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/generator.h"
#include "engine/llm.h"
#include "http/server.h"

namespace tercet::app {

struct ServeOptions {
  std::string path;  // of the model
  engine::LlmOptions llm;
  http::ServerOptions http;
  std::vector<std::string> names;     // that requests may ask for; at least one
  std::string kv_type;                // as it is typed
  std::vector<std::string> api_keys;  // none: everybody is let in
  std::chrono::seconds drain_timeout{30};
};

// Serves until SIGINT or SIGTERM; then refuses new requests, waits for those that run, at most the drain
// timeout or until the next signal, and returns.
Status serve(const ServeOptions& options);

// What a server has done up to a moment.
struct ServerTotals {
  core::GeneratorStats engine;
  int64_t num_prompt_tokens = 0;
  int64_t num_generated_tokens = 0;
};

// One line on the time between two moments.
std::string load_line(const ServerTotals& before, const ServerTotals& now, double seconds);

}  // namespace tercet::app
