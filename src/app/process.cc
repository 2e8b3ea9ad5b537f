#include "app/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>

extern char** environ;

namespace tercet::app {
namespace {

std::vector<std::string> merged_environment(const Process& process) {
  std::vector<std::string> merged;
  for (const auto& [name, value] : process.environment) merged.push_back(name + "=" + value);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    bool replaced = false;
    for (const auto& [name, value] : process.environment) replaced |= text.starts_with(name + "=");
    if (!replaced) merged.emplace_back(text);
  }
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& s : strings) result.push_back(s.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

Result<int> run_process(const Process& process) {
  std::vector<std::string> arguments = process.arguments;
  std::vector<std::string> environment = merged_environment(process);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, process.output_path.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, arguments[0].c_str(), &actions, nullptr,
                                    pointers(arguments).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    return Error{failed == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                 fmt::format("cannot start: {}", std::strerror(failed)), arguments[0]};
  }
  int status = 0;
  for (;;) {
    const pid_t done = ::waitpid(child, &status, process.on_tick ? WNOHANG : 0);
    if (done == child) break;
    if (done < 0 && errno != EINTR) {
      return Error{ErrorCode::kInternal, fmt::format("cannot wait: {}", std::strerror(errno)), arguments[0]};
    }
    if (process.on_tick) {
      process.on_tick();
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace tercet::app
