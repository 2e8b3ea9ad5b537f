// TERCET_CHECK: assertions that stay on in every build. They guard what the program itself promises, never
// its input.
#pragma once

#include <string_view>

namespace tercet {

// Prints the condition, the place and the detail to stderr, and aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line,
                               std::string_view detail = {});

}  // namespace tercet

#define TERCET_CHECK(condition) \
  ((condition) ? (void)0 : ::tercet::check_failed(#condition, __FILE__, __LINE__))
