// Limits: what a template may use before it is stopped. Templates come with model files from anywhere, so
// every one of these is reached by an error and never by a crash or a hang.
#pragma once

#include <cstddef>

namespace tercet::text::jinja {

struct Limits {
  size_t max_source_bytes = size_t{1} << 20;
  // Evaluated nodes, plus one per kBytesPerStep bytes of every string made and kStepsPerElement per element
  // of every list and dict made. With the default, a hostile template gets about two seconds and a few
  // hundred megabytes.
  size_t max_steps = 20'000'000;
  size_t max_depth = 600;                      // nested evaluations; a macro call takes about ten
  size_t max_string_bytes = size_t{64} << 20;  // of any one string, the output included
};

inline constexpr size_t kBytesPerStep = 16;
inline constexpr size_t kStepsPerElement = 2;
inline constexpr size_t kMaxSyntaxDepth = 150;     // nesting of expressions and of blocks in a template
inline constexpr size_t kMaxContainerDepth = 200;  // lists and dicts within one another
inline constexpr size_t kMaxRange = 100'000;       // elements of range(), as in Jinja's sandbox

}  // namespace tercet::text::jinja
