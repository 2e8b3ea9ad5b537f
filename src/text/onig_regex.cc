#include "text/onig_regex.h"

#include <fmt/format.h>

namespace tercet::text {
namespace {

// What stands for the escape \`letter`, or "".
std::string replacement(char letter, bool in_class) {
  // Of the other numbers Oniguruma takes those of Latin-1.
  const std::string members = letter == 'w' || letter == 'W'
                                  ? std::string(kWordMembers) + R"(\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})"
                                  : "0-9a-fA-F";
  switch (letter) {
    case 'w':
    case 'h': return in_class ? members : fmt::format("[{}]", members);
    case 'W':
    case 'H': return in_class ? "" : fmt::format("[^{}]", members);
    default: return "";
  }
}

}  // namespace

Result<std::string> pcre_of_onig(std::string_view expression) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    const char next = i + 1 < expression.size() ? expression[i + 1] : '\0';
    if (c == '\\' && next != '\0') {
      const std::string spelled = replacement(next, in_class);
      out += spelled.empty() ? expression.substr(i, 2) : std::string_view(spelled);
      ++i;
      continue;
    }
    if (in_class && c == '&' && next == '&') {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("the expression {:?} has an intersection of classes (&&)", expression),
                   {}};
    }
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    out += c;
  }
  return out;
}

}  // namespace tercet::text
