#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "app/commands.h"
#include "app/environment.h"
#include "app/inspect.h"
#include "app/model_names.h"

namespace tercet::app {

void add_inspect_command(CLI::App& app, Action* action) {
  const auto options = std::make_shared<InspectOptions>();
  CLI::App* command = app.add_subcommand("inspect", "Print what a model file holds and what it needs");
  command
      ->add_option("MODEL", options->path,
                   "a GGUF or .safetensors file, a Hugging Face folder, or a name that pull knows")
      ->required();
  command->add_flag("--check", options->check, "read all weights and report those that are not numbers");
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([=] {
    *action = [options]() -> Status {
      TERCET_ASSIGN(options->path, resolve_model(options->path, models_folder()));
      return inspect(*options, std::cout);
    };
  });
}

}  // namespace tercet::app
