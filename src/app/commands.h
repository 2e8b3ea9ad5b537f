// The subcommands of `tercet`. Each function adds one, with its flags; what it does when chosen is left in
// `action`.
#pragma once

#include <functional>

#include "base/result.h"

namespace CLI {
class App;
}

namespace tercet::app {

using Action = std::function<Status()>;

void add_run_command(CLI::App& app, Action* action);
void add_pull_command(CLI::App& app, Action* action);
void add_inspect_command(CLI::App& app, Action* action);
void add_convert_command(CLI::App& app, Action* action);
void add_tokenize_command(CLI::App& app, Action* action);
void add_serve_command(CLI::App& app, Action* action);
void add_bench_command(CLI::App& app, Action* action);
void add_bench_tokenize_command(CLI::App& bench, Action* action);
void add_bench_kernels_command(CLI::App& bench, Action* action);
void add_bench_serve_command(CLI::App& bench, Action* action);
void add_bench_schedule_command(CLI::App& bench, Action* action);

}  // namespace tercet::app
