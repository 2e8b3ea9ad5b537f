// Fetches a model by what a person calls it.
#pragma once

#include <string>

#include "base/result.h"

namespace tercet::app {

struct PullOptions {
  std::string model;  // a name of the table, or hf:OWNER/REPO[:FILE]
  std::string models_folder;
  std::string endpoint;  // of the hub
  std::string token;     // for the hub
  bool accept_licence =
      false;  // terms are taken as accepted; otherwise they are asked for, on a terminal only
};

// The path of the model, which is there and has the right SHA-256 afterwards. Talks to stderr and the
// terminal.
Result<std::string> pull(const PullOptions& options);

}  // namespace tercet::app
