// Hand-written scanners for well-known pre-tokenizer expressions.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace tercet::text {

// The end of the match of `regex` that begins at `pos`, or `pos` where none does. `text` is valid UTF-8.
using SplitScanner = size_t (*)(std::string_view text, size_t pos);

struct NamedScanner {
  std::string_view regex;
  SplitScanner scan;
};
std::span<const NamedScanner> split_scanners();
// nullptr when `regex` has none.
SplitScanner find_split_scanner(std::string_view regex);

}  // namespace tercet::text
