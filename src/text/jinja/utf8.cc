#include "text/jinja/utf8.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/check.h"

namespace tercet::text::jinja {

CodePoint code_point_at(std::string_view text, size_t position) {
  TERCET_CHECK(position < text.size());
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + position;
  if (*bytes < 0x80) return {*bytes, 1};
  utf8proc_int32_t value = 0;
  const size_t available = std::min<size_t>(text.size() - position, 4);
  const utf8proc_ssize_t size = utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(available), &value);
  if (size <= 0) return {0xFFFD, 1};
  return {static_cast<char32_t>(value), static_cast<size_t>(size)};
}

void append_utf8(std::string& out, char32_t code_point) {
  utf8proc_uint8_t buffer[4];
  const auto size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), buffer);
  if (size <= 0) {
    out += "\xEF\xBF\xBD";
  } else {
    out.append(reinterpret_cast<const char*>(buffer), static_cast<size_t>(size));
  }
}

size_t utf8_length(std::string_view text) {
  size_t length = 0;
  for (size_t i = 0; i < text.size(); i += code_point_at(text, i).size) ++length;
  return length;
}

size_t utf8_offset(std::string_view text, size_t index) {
  size_t offset = 0;
  for (; index > 0 && offset < text.size(); --index) offset += code_point_at(text, offset).size;
  return offset;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_line_break(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

namespace {
utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }
}  // namespace

bool is_printable(char32_t c) {
  const utf8proc_category_t kind = category(c);
  return c == ' ' || (kind != UTF8PROC_CATEGORY_CN && kind < UTF8PROC_CATEGORY_ZS);
}

bool is_upper(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LU; }
bool is_lower(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LL; }
bool is_digit(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }

bool is_alpha(char32_t c) {
  const utf8proc_category_t kind = category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

char32_t to_upper(char32_t c) {
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}
char32_t to_lower(char32_t c) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

}  // namespace tercet::text::jinja
