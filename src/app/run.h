// `tercet run`: chats in the terminal, or answers one prompt.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/llm.h"

namespace tercet::app {

struct RunOptions {
  std::string path;  // of the model
  engine::LlmOptions llm;
  // One answer to this; absent: a conversation with the person at the terminal.
  std::optional<std::string> prompt;
  std::string system;
  std::vector<std::pair<std::string, std::string>> sampling;  // name and value, over the model's defaults
  std::vector<std::pair<core::TokenId, float>> logit_bias;
  core::StopParams stop;
  bool raw = false;   // the prompt as it is, without the chat template
  bool json = false;  // answers as JSON objects, one a line
};

Status run(const RunOptions& options);

}  // namespace tercet::app
