#include "text/split_scanners.h"

#include "text/unicode.h"

namespace tercet::text {
namespace {

struct Char {
  uint16_t classes = 0;  // 0 at the end of the text
  uint32_t length = 0;
};

Char char_at(std::string_view text, size_t pos) {
  if (pos >= text.size()) return {};
  const auto byte = static_cast<unsigned char>(text[pos]);
  if (byte < 0x80) return {char_class(byte), 1};
  const DecodedChar c = decode_utf8(text, pos);
  if (c.length == 0) return {0, 1};
  return {char_class(c.code_point), c.length};
}

// The end of the run of at most `limit` characters of any of `classes` that begins at `pos`.
size_t run_of(uint16_t classes, std::string_view text, size_t pos, size_t limit = static_cast<size_t>(-1)) {
  for (size_t count = 0; count < limit; ++count) {
    const Char c = char_at(text, pos);
    if ((c.classes & classes) == 0) break;
    pos += c.length;
  }
  return pos;
}

size_t run_of_none(uint16_t classes, std::string_view text, size_t pos) {
  for (Char c = char_at(text, pos); c.length > 0 && (c.classes & classes) == 0; c = char_at(text, pos))
    pos += c.length;
  return pos;
}

enum class Contractions { kNone, kLowercase, kAnyAsciiCase, kAnyCase };

// 's 't 're 've 'm 'll 'd behind an apostrophe at `pos`. kAnyCase folds as Unicode does: U+017F is an s.
size_t contraction(Contractions kind, std::string_view text, size_t pos) {
  if (kind == Contractions::kNone || text[pos] != '\'' || pos + 1 >= text.size()) return pos;
  const auto letter = [&](size_t i) -> char {
    if (i >= text.size()) return 0;
    const char c = text[i];
    return kind != Contractions::kLowercase && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  const char first = letter(pos + 1), second = letter(pos + 2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return pos + 2;
  if ((first == 'r' || first == 'v') && second == 'e') return pos + 3;
  if (first == 'l' && second == 'l') return pos + 3;
  if (kind == Contractions::kAnyCase && text.substr(pos + 1, 2) == "\xC5\xBF") return pos + 3;
  return pos;
}

// \s+(?!\S)|\s+ : a run of white space without its last character, unless the text ends with the run or the
// run is one character.
size_t spaces_before_word(std::string_view text, size_t pos) {
  size_t last = pos, end = pos;
  for (Char c = char_at(text, end); c.classes & kSpace; c = char_at(text, end)) {
    last = end;
    end += c.length;
  }
  return end == text.size() || last == pos ? end : last;
}

// \s*[\r\n]+|\s+(?!\S)|\s+ : a run of white space up to its last newline, or as above where it has none.
size_t newlines_or_spaces(std::string_view text, size_t pos) {
  size_t after_newline = pos, end = pos;
  for (Char c = char_at(text, end); c.classes & kSpace; c = char_at(text, end)) {
    end += c.length;
    if (c.classes & kNewline) after_newline = end;
  }
  return after_newline != pos ? after_newline : spaces_before_word(text, pos);
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t scan_gpt2(std::string_view text, size_t pos) {
  const size_t contracted = contraction(Contractions::kLowercase, text, pos);
  if (contracted != pos) return contracted;
  const size_t word = text[pos] == ' ' ? pos + 1 : pos;
  const Char c = char_at(text, word);
  if (c.length > 0) {
    if (c.classes & kLetter) return run_of(kLetter, text, word);
    if (c.classes & kNumber) return run_of(kNumber, text, word);
    if (!(c.classes & kSpace)) return run_of_none(kSpace | kLetter | kNumber, text, word);
  }
  return spaces_before_word(text, pos);
}

// CONTRACTIONS|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,kDigits}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
// kMarks: marks count as letters, in [\p{L}\p{M}]+ and in [^\s\p{L}\p{M}\p{N}]+.
template <Contractions kContractions, size_t kDigits, bool kMarks = false>
size_t scan_gpt4(std::string_view text, size_t pos) {
  constexpr uint16_t kWord = kMarks ? kLetter | kMark : kLetter;
  constexpr uint16_t kNoSymbol = kSpace | kNumber | kWord;
  const size_t contracted = contraction(kContractions, text, pos);
  if (contracted != pos) return contracted;
  const Char c = char_at(text, pos);
  if (c.classes & kWord) return run_of(kWord, text, pos + c.length);
  if (c.classes & kNumber) return run_of(kNumber, text, pos, kDigits);
  if (!(c.classes & kNewline)) {
    const size_t after_prefix = pos + c.length;
    const size_t end = run_of(kWord, text, after_prefix);
    if (end != after_prefix) return end;
  }
  const size_t symbols = text[pos] == ' ' ? pos + 1 : pos;
  const size_t symbols_end = run_of_none(kNoSymbol, text, symbols);
  if (symbols_end != symbols) return run_of(kNewline, text, symbols_end);

  return newlines_or_spaces(text, pos);
}

constexpr bool is_ascii_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// [!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|
// ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
size_t scan_deepseek3(std::string_view text, size_t pos) {
  constexpr uint16_t kWord = kLetter | kMark, kSigns = kPunctuation | kSymbol;
  const Char c = char_at(text, pos);
  if (c.length == 1 && (c.classes & kSigns) && pos + 1 < text.size() && is_ascii_letter(text[pos + 1])) {
    size_t end = pos + 2;
    while (end < text.size() && is_ascii_letter(text[end])) ++end;
    return end;
  }
  if (c.classes & kWord) return run_of(kWord, text, pos + c.length);
  if (!(c.classes & (kNewline | kSigns))) {
    const size_t end = run_of(kWord, text, pos + c.length);
    if (end != pos + c.length) return end;
  }
  const size_t signs = text[pos] == ' ' ? pos + 1 : pos;
  const size_t signs_end = run_of(kSigns, text, signs);
  if (signs_end != signs) return run_of(kNewline, text, signs_end);
  return c.classes & kSpace ? newlines_or_spaces(text, pos) : pos;
}

template <size_t kLimit>
size_t scan_numbers(std::string_view text, size_t pos) {
  return run_of(kNumber, text, pos, kLimit);
}

size_t scan_three_ascii_digits(std::string_view text, size_t pos) {
  for (size_t i = pos; i < pos + 3; ++i) {
    if (i >= text.size() || text[i] < '0' || text[i] > '9') return pos;
  }
  return pos + 3;
}

constexpr size_t kUnlimited = static_cast<size_t>(-1);
#define ASCII_CONTRACTIONS "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|"
#define ANY_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
#define GPT4_WORD R"([^\r\n\p{L}\p{N}]?\p{L}+|)"
#define GPT4_REST R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define MARKS_WORD R"([^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|)"
#define MARKS_REST R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define GPT2 R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))"

// The newlines in the classes are written as escapes in some files and as themselves in others.
#define DEEPSEEK3(cr, lf)                                       \
  R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^)" cr lf \
  R"(\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[)" cr lf R"(]*|\s*[)" cr lf R"(]+|\s+(?!\S)|\s+)"

constexpr NamedScanner kScanners[] = {
    // Without its last alternative the expression leaves single white space unmatched: isolated, that is the
    // same.
    {GPT2, scan_gpt2},
    {GPT2 R"(|\s+)", scan_gpt2},
    {ASCII_CONTRACTIONS GPT4_WORD R"(\p{N})" GPT4_REST, scan_gpt4<Contractions::kAnyAsciiCase, 1>},
    {ASCII_CONTRACTIONS GPT4_WORD R"(\p{N}{1,3})" GPT4_REST, scan_gpt4<Contractions::kAnyAsciiCase, 3>},
    {ASCII_CONTRACTIONS GPT4_WORD R"(\p{N}+)" GPT4_REST, scan_gpt4<Contractions::kAnyAsciiCase, kUnlimited>},
    {ASCII_CONTRACTIONS MARKS_WORD R"(\p{N})" MARKS_REST, scan_gpt4<Contractions::kAnyAsciiCase, 1, true>},
    {ANY_CONTRACTIONS GPT4_WORD R"(\p{N})" GPT4_REST, scan_gpt4<Contractions::kAnyCase, 1>},
    {ANY_CONTRACTIONS GPT4_WORD R"(\p{N}{1,3})" GPT4_REST, scan_gpt4<Contractions::kAnyCase, 3>},
    {ANY_CONTRACTIONS GPT4_WORD R"(\p{N}+)" GPT4_REST, scan_gpt4<Contractions::kAnyCase, kUnlimited>},
    {ANY_CONTRACTIONS MARKS_WORD R"(\p{N})" MARKS_REST, scan_gpt4<Contractions::kAnyCase, 1, true>},
    {GPT4_WORD R"(\p{N})" GPT4_REST, scan_gpt4<Contractions::kNone, 1>},
    {DEEPSEEK3("\\r", "\\n"), scan_deepseek3},
    {DEEPSEEK3("\r", "\n"), scan_deepseek3},
    {R"(\p{N})", scan_numbers<1>},
    {R"(\p{N}{1,3})", scan_numbers<3>},
    {R"(\p{N}+)", scan_numbers<kUnlimited>},
    {"[0-9][0-9][0-9]", scan_three_ascii_digits},
};

}  // namespace

std::span<const NamedScanner> split_scanners() { return kScanners; }

SplitScanner find_split_scanner(std::string_view regex) {
  for (const NamedScanner& named : kScanners) {
    if (named.regex == regex) return named.scan;
  }
  return nullptr;
}

}  // namespace tercet::text
