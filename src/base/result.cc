#include "base/result.h"

#include <cstdio>
#include <cstdlib>

namespace tercet {

void check_failed(const char* condition, const char* file, int line, std::string_view detail) {
  std::fprintf(stderr, "tercet: %s:%d: check failed: %s%s%.*s\n", file, line, condition,
               detail.empty() ? "" : ": ", static_cast<int>(detail.size()), detail.data());
  std::abort();
}

const char* error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid argument";
    case ErrorCode::kNotFound: return "not found";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kCorrupt: return "corrupt";
    case ErrorCode::kExhausted: return "exhausted";
    case ErrorCode::kCancelled: return "cancelled";
    case ErrorCode::kIo: return "i/o";
    case ErrorCode::kInternal: return "internal";
  }
  return "unknown";
}

std::string Error::to_string() const { return where.empty() ? message : where + ": " + message; }

}  // namespace tercet
