// UTF-8 by code point, with the character classes that Python's str methods use. A byte that belongs to no
// valid sequence counts as one character, and every operation copies it as it is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tercet::text::jinja {

struct CodePoint {
  char32_t value;  // U+FFFD for an invalid byte
  size_t size;     // bytes, at least 1
};

// Requires position < text.size().
CodePoint code_point_at(std::string_view text, size_t position);
void append_utf8(std::string& out, char32_t code_point);

// Number of code points.
size_t utf8_length(std::string_view text);
// Byte position of code point `index`, or text.size().
size_t utf8_offset(std::string_view text, size_t index);

bool is_space(char32_t c);
bool is_line_break(char32_t c);
// Whether repr() shows it as it is.
bool is_printable(char32_t c);
bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_alpha(char32_t c);
bool is_digit(char32_t c);
char32_t to_upper(char32_t c);
char32_t to_lower(char32_t c);

}  // namespace tercet::text::jinja
