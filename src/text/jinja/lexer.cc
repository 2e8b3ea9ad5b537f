#include "text/jinja/lexer.h"

#include <algorithm>
#include <optional>

#include "text/jinja/error.h"
#include "text/jinja/utf8.h"

namespace tercet::text::jinja {
namespace {

bool is_ascii_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_name_char(char c) { return is_name_start(c) || is_digit(c); }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (position_ < source_.size()) lex_data();
    add(Token::Type::kEnd, "", source_.size());
    return std::move(tokens_);
  }

 private:
  bool at(std::string_view text) const { return source_.substr(position_).starts_with(text); }
  char peek(size_t ahead = 0) const {
    return position_ + ahead < source_.size() ? source_[position_ + ahead] : '\0';
  }
  void add(Token::Type type, std::string_view text, size_t offset) {
    tokens_.push_back({type, std::string(text), static_cast<uint32_t>(offset)});
  }

  // Text up to the next tag, and then that tag.
  void lex_data() {
    const size_t begin = position_;
    size_t tag = source_.find('{', begin);
    while (tag != std::string_view::npos && tag + 1 < source_.size() && source_[tag + 1] != '{' &&
           source_[tag + 1] != '%' && source_[tag + 1] != '#') {
      tag = source_.find('{', tag + 1);
    }
    if (tag == std::string_view::npos || tag + 1 >= source_.size()) {
      position_ = source_.size();
      return add_data(begin, position_);
    }
    const char kind = source_[tag + 1];
    position_ = tag + 2;
    const char sign = take_sign();
    add_data(begin, strip_before_tag(begin, tag, sign, kind == '{'));
    if (kind == '#') return skip_comment(tag);
    if (kind == '%' && lex_raw(tag)) return;
    const bool is_block = kind == '%';
    add(is_block ? Token::Type::kBlockBegin : Token::Type::kPrintBegin, "", tag);
    lex_code(tag, is_block);
  }

  void add_data(size_t begin, size_t end) {
    if (end > begin) add(Token::Type::kData, source_.substr(begin, end - begin), begin);
  }

  char take_sign() {
    if (peek() != '-' && peek() != '+') return '\0';
    return source_[position_++];
  }

  // The end of the data [begin, tag) once the tag's sign and lstrip_blocks are applied.
  size_t strip_before_tag(size_t begin, size_t tag, char sign, bool is_print) const {
    const std::string_view data = source_.substr(begin, tag - begin);
    if (sign == '-') return begin + trimmed_size(data);
    if (sign == '+' || is_print) return tag;
    const size_t line_break = data.rfind('\n');
    if (line_break == std::string_view::npos && !line_starting_) return tag;
    const size_t line = line_break == std::string_view::npos ? 0 : line_break + 1;
    return trimmed_size(data.substr(line)) == 0 ? begin + line : tag;
  }

  // Size without trailing white space.
  static size_t trimmed_size(std::string_view text) {
    size_t size = 0;
    for (size_t i = 0; i < text.size();) {
      const auto [c, width] = code_point_at(text, i);
      i += width;
      if (!is_space(c)) size = i;
    }
    return size;
  }

  void skip_spaces() {
    while (position_ < source_.size()) {
      const auto [c, width] = code_point_at(source_, position_);
      if (!is_space(c)) return;
      position_ += width;
    }
  }

  // Consumes a tag's end ("%}", "-%}", "+%}") with the white space that goes with it, if it is here.
  bool take_tag_end(std::string_view end, bool trims_line_break) {
    const size_t begin = position_;
    const char sign = peek() == '-' || (peek() == '+' && end != "}}") ? peek() : '\0';
    if (sign != '\0') ++position_;
    if (!at(end)) {
      position_ = begin;
      return false;
    }
    position_ += end.size();
    if (sign == '-') {
      skip_spaces();
    } else if (sign == '\0' && trims_line_break && peek() == '\n') {
      ++position_;
    }
    line_starting_ = source_[position_ - 1] == '\n';
    return true;
  }

  void skip_comment(size_t tag) {
    for (; position_ < source_.size(); ++position_) {
      if (take_tag_end("#}", true)) return;
    }
    fail_syntax(tag, "this comment has no end: expected #}");
  }

  bool take_word(std::string_view word) {
    const size_t begin = position_;
    skip_spaces();
    if (at(word) && !is_name_char(peek(word.size()))) {
      position_ += word.size();
      skip_spaces();
      return true;
    }
    position_ = begin;
    return false;
  }

  // {% raw %}: everything up to {% endraw %} is data.
  bool lex_raw(size_t tag) {
    const size_t start = position_;
    if (!take_word("raw") || !take_tag_end("%}", false)) {
      position_ = start;
      return false;
    }
    const size_t begin = position_;
    while (true) {
      const size_t end_tag = source_.find("{%", position_);
      if (end_tag == std::string_view::npos)
        fail_syntax(tag, "this raw block has no end: expected {% endraw %}");
      position_ = end_tag + 2;
      const char sign = take_sign();
      if (!take_word("endraw")) continue;
      // Set before take_tag_end overwrites it: whether the data starts a line.
      const size_t end = strip_before_tag(begin, end_tag, sign, false);
      if (!take_tag_end("%}", true)) continue;
      return add_data(begin, end), true;
    }
  }

  void lex_code(size_t tag, bool is_block) {
    const std::string_view end = is_block ? "%}" : "}}";
    brackets_.clear();
    while (true) {
      while (is_ascii_space(peek()) && position_ < source_.size()) ++position_;
      const size_t begin = position_;
      if (begin >= source_.size()) {
        fail_syntax(tag, std::string("this tag has no end: expected ") + std::string(end));
      }
      if (brackets_.empty() && take_tag_end(end, is_block)) {
        return add(is_block ? Token::Type::kBlockEnd : Token::Type::kPrintEnd, "", begin);
      }
      lex_token();
    }
  }

  void lex_token() {
    const size_t begin = position_;
    const char c = peek();
    if (is_name_start(c)) {
      while (is_name_char(peek())) ++position_;
      add(Token::Type::kName, source_.substr(begin, position_ - begin), begin);
    } else if (is_digit(c)) {
      lex_number();
    } else if (c == '"' || c == '\'') {
      lex_string();
    } else {
      lex_operator();
    }
  }

  // Digits, with single underscores between them.
  void take_digits(auto is_wanted) {
    while (is_wanted(peek()) || (peek() == '_' && is_wanted(peek(1)))) ++position_;
  }

  void lex_number() {
    const size_t begin = position_;
    const bool after_dot = begin > 0 && source_[begin - 1] == '.';
    const char base = peek() == '0' ? static_cast<char>(peek(1) | 0x20) : '\0';
    Token::Type type = Token::Type::kInteger;
    if (base == 'x' || base == 'o' || base == 'b') {
      position_ += 2;
      take_digits([base](char c) {
        if (base == 'x')
          return is_digit(c) || (static_cast<char>(c | 0x20) >= 'a' && static_cast<char>(c | 0x20) <= 'f');
        return c >= '0' && c <= (base == 'o' ? '7' : '1');
      });
      if (position_ == begin + 2) fail_syntax(begin, "a number without digits");
    } else {
      take_digits(is_digit);
      if (!after_dot) {
        if (peek() == '.' && is_digit(peek(1))) {
          type = Token::Type::kFloat;
          ++position_;
          take_digits(is_digit);
        }
        const bool signed_exponent = peek(1) == '+' || peek(1) == '-';
        if ((peek() == 'e' || peek() == 'E') && is_digit(peek(signed_exponent ? 2 : 1))) {
          type = Token::Type::kFloat;
          position_ += signed_exponent ? 2 : 1;
          take_digits(is_digit);
        }
      }
    }
    std::string text(source_.substr(begin, position_ - begin));
    std::erase(text, '_');
    add(type, text, begin);
  }

  void lex_string() {
    const size_t begin = position_;
    const char quote = source_[position_++];
    std::string text;
    while (position_ < source_.size()) {
      const char c = source_[position_++];
      if (c == quote) return add(Token::Type::kString, text, begin);
      if (c == '\\') {
        lex_escape(text);
      } else {
        text += c;
      }
    }
    fail_syntax(begin, "this string has no end");
  }

  // Python's escapes; an unknown one stays as it is written.
  void lex_escape(std::string& text) {
    const char c = peek();
    if (position_ < source_.size()) ++position_;
    static constexpr std::string_view kNames = "abfnrtv\\'\"";
    static constexpr std::string_view kValues = "\a\b\f\n\r\t\v\\'\"";
    if (const size_t i = kNames.find(c); c != '\0' && i != std::string_view::npos) {
      text += kValues[i];
    } else if (c == '\n') {
      return;
    } else if (c >= '0' && c <= '7') {
      char32_t value = static_cast<char32_t>(c - '0');
      for (int i = 0; i < 2 && peek() >= '0' && peek() <= '7'; ++i) {
        value = value * 8 + static_cast<char32_t>(source_[position_++] - '0');
      }
      append_utf8(text, value);
    } else if (c == 'x' || c == 'u' || c == 'U') {
      append_utf8(text, take_hex(c == 'x' ? 2 : c == 'u' ? 4 : 8));
    } else {
      text += '\\';
      if (c != '\0') text += c;
    }
  }

  char32_t take_hex(int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const char c = peek();
      const char lower = static_cast<char>(c | 0x20);
      if (!is_digit(c) && (lower < 'a' || lower > 'f')) {
        fail_syntax(position_, "expected " + std::to_string(digits) + " hexadecimal digits in this escape");
      }
      value = value * 16 + static_cast<char32_t>(is_digit(c) ? c - '0' : lower - 'a' + 10);
      ++position_;
    }
    return value;
  }

  void lex_operator() {
    const size_t begin = position_;
    static constexpr std::string_view kTwo[] = {"**", "//", "==", "!=", ">=", "<="};
    static constexpr std::string_view kOne = "+-/*%~[](){}><=.:|,;";
    const std::string_view two = source_.substr(begin, 2);
    const bool is_two = std::find(std::begin(kTwo), std::end(kTwo), two) != std::end(kTwo);
    if (!is_two && (peek() == '\0' || kOne.find(peek()) == std::string_view::npos)) {
      fail_syntax(begin, "unexpected character '" +
                             std::string(source_.substr(begin, code_point_at(source_, begin).size)) + "'");
    }
    position_ += is_two ? 2 : 1;
    balance(source_[begin], begin);
    add(Token::Type::kOperator, source_.substr(begin, position_ - begin), begin);
  }

  void balance(char c, size_t offset) {
    if (c == '(') brackets_ += ')';
    if (c == '[') brackets_ += ']';
    if (c == '{') brackets_ += '}';
    if (c != ')' && c != ']' && c != '}') return;
    if (brackets_.empty()) fail_syntax(offset, std::string("unexpected '") + c + "'");
    if (brackets_.back() != c) {
      fail_syntax(offset, std::string("unexpected '") + c + "', expected '" + brackets_.back() + "'");
    }
    brackets_.pop_back();
  }

  std::string_view source_;
  size_t position_ = 0;
  bool line_starting_ = true;  // the text before position_ ends a line
  std::string brackets_;       // closing brackets that are due
  std::vector<Token> tokens_;
};

}  // namespace

std::string normalize_source(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

std::vector<Token> tokenize(std::string_view normalized_source) { return Lexer(normalized_source).run(); }

}  // namespace tercet::text::jinja
