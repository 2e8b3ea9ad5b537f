// GGUF files of a model hub that speaks the paths of the Hugging Face Hub: /api/models/OWNER/REPO lists
// files, /OWNER/REPO/resolve/main/FILE is one.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tercet::app {

// hf:OWNER/REPO[:FILE]. FILE may be a part of a file's name, such as Q4_K_M, when it fits one file only.
struct HubName {
  std::string owner;
  std::string repo;
  std::string file;  // "": the one GGUF file, or the Q4_K_M one
};

struct HubOptions {
  std::string endpoint;       // scheme, host and port
  std::string token;          // "" for none
  std::string models_folder;  // files go to hf/OWNER/REPO/FILE below it
  std::chrono::milliseconds retry_delay{1000};
};

bool is_hub_name(std::string_view name);
Result<HubName> parse_hub_name(std::string_view name);

// The files to fetch for `wanted` (as HubName::file) out of a repository's `files`: one GGUF file, or all
// parts of a split one in order. The error of an ambiguous choice lists what there is.
Result<std::vector<std::string>> choose_files(const std::vector<std::string>& files,
                                              const std::string& wanted);

// Fetches into the models' folder and returns the path of the (first) file. Files that are there already are
// kept.
Result<std::string> pull_from_hub(const HubName& name, const HubOptions& options);

// The path of what was pulled before by this name; "" when it is not there.
Result<std::string> find_pulled(const HubName& name, const std::string& models_folder);

}  // namespace tercet::app
