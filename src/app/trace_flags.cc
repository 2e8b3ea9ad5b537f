#include "app/trace_flags.h"

#include <CLI/CLI.hpp>

#include "base/file.h"

namespace tercet::app {

void add_trace_flags(CLI::App& command, TraceFlags& flags, bool required) {
  auto* file =
      command.add_option("--trace", flags.file, "requests as a service saw them: Mooncake's or Azure's")
          ->type_name("FILE");
  if (required) file->required();
  command.add_option("--speed", flags.scale.speed, "replay so many times as fast")
      ->check(CLI::Range(1e-3, 1e6).description(""))
      ->type_name("X")
      ->capture_default_str();
  const auto number = [&](const char* name, int& value, int least, const char* help) {
    command.add_option(name, value, help)
        ->check(CLI::Range(least, 1 << 20).description(""))
        ->type_name("N")
        ->capture_default_str();
  };
  number("--limit", flags.scale.limit, 0, "only the first N requests; 0: all");
  number("--shrink", flags.scale.shrink, 1, "prompts and answers N times shorter");
}

Result<bench::Trace> read_trace(const TraceFlags& flags) {
  TERCET_ASSIGN(const std::string text, read_file(flags.file));
  TERCET_ASSIGN(bench::Trace trace, bench::parse_trace(text, flags.file));
  return bench::scaled(std::move(trace), flags.scale);
}

}  // namespace tercet::app
