// The flags of every command that loads a model: which one, and how it runs.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "engine/llm.h"

namespace CLI {
class App;
}

namespace tercet::app {

struct ModelFlags {
  std::string model;  // a file, or a name that pull knows; "": the default model
  engine::LlmOptions llm;
  std::string kv_type = "f16";
  std::string isa = "auto";
  bool verbose = false;
};

void add_model_flags(CLI::App& command, ModelFlags& flags);

// Completes flags.llm and returns the model's path, fetching the default model where it is not here yet.
Result<std::string> apply_model_flags(ModelFlags& flags);

// Loads it, with progress where stderr is a terminal.
Result<std::unique_ptr<engine::Llm>> load_model(const std::string& path, const engine::LlmOptions& options);

}  // namespace tercet::app
