// The flags of commands that replay a trace.
#pragma once

#include <string>

#include "bench/trace.h"

namespace CLI {
class App;
}

namespace tercet::app {

struct TraceFlags {
  std::string file;
  bench::TraceScale scale;
};
void add_trace_flags(CLI::App& command, TraceFlags& flags, bool required);

Result<bench::Trace> read_trace(const TraceFlags& flags);

}  // namespace tercet::app
