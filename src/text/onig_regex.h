// Regular expressions as tokenizer.json writes them, in Oniguruma's syntax (Ruby's), for PCRE2.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tercet::text {

// The same expression where both mean the same. \w, \W, \h and \H are spelled out as Oniguruma has them.
// kUnsupported for intersections of classes (&&), which PCRE2 would take for text.
Result<std::string> pcre_of_onig(std::string_view expression);

}  // namespace tercet::text
