// The tercet command. Exit status: 0 done, 1 an error, 2 a command line that makes no sense.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>

#include "app/commands.h"

namespace {

constexpr int kError = 1;
constexpr int kUsage = 2;

// One line, whatever the message holds.
void print_error(std::string message) {
  std::ranges::replace(message, '\n', ' ');
  fmt::print(stderr, "tercet: {}\n", message);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs open language models on your own machine.", "tercet");
  app.set_version_flag("--version", "tercet " TERCET_VERSION);
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(34);
  tercet::app::Action action;
  tercet::app::add_run_command(app, &action);
  tercet::app::add_serve_command(app, &action);
  tercet::app::add_pull_command(app, &action);
  tercet::app::add_inspect_command(app, &action);
  tercet::app::add_convert_command(app, &action);
  tercet::app::add_tokenize_command(app, &action);
  tercet::app::add_bench_command(app, &action);
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) throw CLI::RequiredError("A command");
  } catch (const CLI::Success& help_or_version) {
    return app.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    const auto chosen = app.get_subcommands();
    print_error(fmt::format("{} (see tercet {}--help)", error.what(),
                            chosen.empty() ? "" : chosen[0]->get_name() + " "));
    return kUsage;
  }
  if (const tercet::Status status = action(); !status.ok()) {
    print_error(status.error().to_string());
    return kError;
  }
  return 0;
}
