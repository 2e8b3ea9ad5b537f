#include "text/onig_regex.h"

#include <fmt/format.h>

namespace tercet::text {
namespace {

// Oniguruma's word characters: Alphabetic, marks, decimal digits, connectors. Alphabetic are the letters, the
// letter-like numbers and the circled letters among the symbols (Unicode 15, DerivedCoreProperties.txt); of
// the other numbers it takes those of Latin-1.
constexpr std::string_view kWord =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";
constexpr std::string_view kHex = "0-9a-fA-F";

// What stands for the escape \`letter`, or "".
std::string replacement(char letter, bool in_class) {
  const std::string_view members = letter == 'w' || letter == 'W' ? kWord : kHex;
  switch (letter) {
    case 'w':
    case 'h': return in_class ? std::string(members) : fmt::format("[{}]", members);
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
