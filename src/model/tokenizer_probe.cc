#include "model/tokenizer_probe.h"

#include <fmt/format.h>

#include "format/metadata.h"

namespace tercet::model {
namespace {

// Each where pre-tokenizers part ways: contractions in either case, digits in groups, runs of spaces and
// newlines, punctuation before and after letters, scripts without spaces, marks, symbols, emoji.
constexpr const char* kProbes[] = {
    "Hello, world! This is a test.",
    "I'll don't WE'VE it's they'RE you'd",
    "1 12 123 1234 12345 3.14159 2024-01-31 1,000,000",
    "  two   three    four     spaces \t\ttabs\t \n\n\nlines\r\n  indented\n    more\n",
    "def f(x_1, y):\n    return x_1**2 + y // 3  # comment!?\n",
    "https://example.org/path?q=a%20b&c=d#e",
    "CamelCaseWords XMLHttpRequest iPhone14Pro MAX_VALUE",
    "Grüße, naïve café, Ελληνικά, Русский текст, עברית, العربية, हिन्दी में",
    "日本語のテキスト、カタカナ。中文字符，你好世界！한국어 문장",
    "a-b--c...d!!!e?(f)[g]{h}<i>/j\\k|l`m~n@o#p$q%r^s&t*u",
    "emoji 🙂🙃👩‍👩‍👧 ∑∫√ ≠≤ ½ ² Ⅳ ①",
    "e\xcc\x81 combining, zero\xe2\x80\x8bwidth, nbsp\xc2\xa0here",
    " leading and trailing ",
    "\n",
    "x = 0xFF; y = 1e-9; z = 'it''s'; \"quoted\"",
};

}  // namespace

std::string tokenizer_difference(const text::Tokenizer& a, const text::Tokenizer& b) {
  for (const char* probe : kProbes)
    if (a.encode(probe) != b.encode(probe)) return fmt::format("they differ on {}", format::quote(probe));
  return "";
}

}  // namespace tercet::model
