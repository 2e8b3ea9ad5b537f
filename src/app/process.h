// Runs another program and waits for it, without a shell.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tercet::app {

struct Process {
  std::vector<std::string> arguments;                            // the first is looked up in PATH
  std::vector<std::pair<std::string, std::string>> environment;  // added to this process's own
  std::string output_path;                                       // receives standard output and error
  std::function<void()> on_tick;  // called about five times a second while it runs; may be empty
};

// The exit status; 128 + n when signal n ended it. Standard input is empty. kNotFound: there is no such
// program.
Result<int> run_process(const Process& process);

}  // namespace tercet::app
