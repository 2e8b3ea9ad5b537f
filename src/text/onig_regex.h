// Regular expressions as tokenizer.json writes them, in Oniguruma's syntax (Ruby's), for PCRE2.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tercet::text {

// What both that syntax and Rust's take for a word (\w): Alphabetic, marks, decimal digits, connectors.
// Alphabetic are the letters, the letter-like numbers and the circled letters among the symbols (Unicode 15,
// DerivedCoreProperties.txt). To stand within a class of PCRE2.
inline constexpr std::string_view kWordMembers =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";

// The same expression where both mean the same. \w, \W, \h and \H are spelled out as Oniguruma has them.
// kUnsupported for intersections of classes (&&), which PCRE2 would take for text.
Result<std::string> pcre_of_onig(std::string_view expression);

}  // namespace tercet::text
