// How a fault in a template travels inside this folder: thrown where it is found, caught in Template::parse
// and Template::render, which return it as an Error with line and column.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace tercet::text::jinja {

inline constexpr size_t kUnknownOffset = ~size_t{0};

struct TemplateError {
  ErrorCode code = ErrorCode::kInvalidArgument;
  std::string message;
  size_t offset = kUnknownOffset;  // in the source; unknown: where the interpreter stands
};

[[noreturn]] inline void fail(std::string message, ErrorCode code = ErrorCode::kInvalidArgument) {
  throw TemplateError{code, std::move(message), kUnknownOffset};
}

// A fault in the template's own text, at a byte of the source.
[[noreturn]] inline void fail_syntax(size_t offset, std::string message,
                                     ErrorCode code = ErrorCode::kInvalidArgument) {
  throw TemplateError{code, std::move(message), offset};
}

}  // namespace tercet::text::jinja
