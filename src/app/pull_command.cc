#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "app/commands.h"
#include "app/environment.h"
#include "app/model_names.h"
#include "app/pull.h"

namespace tercet::app {

void add_pull_command(CLI::App& app, Action* action) {
  const auto options = std::make_shared<PullOptions>();
  const auto list = std::make_shared<bool>(false);
  options->endpoint = hub_endpoint();
  options->token = hub_token();
  options->models_folder = models_folder();
  CLI::App* command = app.add_subcommand("pull", "Fetch a model by name and check it");
  command->footer(
      "Known names:\n" + list_named_models() +
      "  hf:OWNER/REPO[:FILE]           a GGUF file of a model hub\n"
      "Models go to TERCET_MODELS, else $XDG_CACHE_HOME/tercet/models, else ~/.cache/tercet/models.\n"
      "A hub's token is read from HF_TOKEN.");
  auto* name = command->add_option("NAME", options->model, "a known name, or hf:OWNER/REPO[:FILE]");
  command->add_flag("--list", *list, "print the known names")->excludes(name);
  command->add_flag("--accept-license,--yes", options->accept_licence,
                    "accept the terms of a model that has some");
  command->add_option("--endpoint", options->endpoint, "address of the hub; HF_ENDPOINT sets it too")
      ->capture_default_str();
  command->callback([=] {
    if (!*list && options->model.empty()) throw CLI::RequiredError("NAME");
    *action = [options, list]() -> Status {
      if (*list) {
        fmt::print("{}", list_named_models());
        return {};
      }
      TERCET_ASSIGN(const std::string path, pull(*options));
      fmt::print("{}\n", path);
      return {};
    };
  });
}

}  // namespace tercet::app
