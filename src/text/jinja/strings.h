// Operations on strings that methods and filters share. All keep the marks of what they copy.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace tercet::text::jinja {

enum class Sides { kBoth, kLeft, kRight };

// Without the characters in `chars` at the ends; null: without white space.
MarkedString strip(const MarkedString& text, const MarkedString* chars, Sides sides);

// Each code point replaced by what `map` gives for it, in order.
MarkedString map_code_points(const MarkedString& text, const std::function<char32_t(char32_t)>& map);
MarkedString upper(const MarkedString& text);
MarkedString lower(const MarkedString& text);
MarkedString capitalize(const MarkedString& text);

// At most `count` replacements; negative: all.
MarkedString replace(Runtime& runtime, const MarkedString& text, const MarkedString& from,
                     const MarkedString& to, int64_t count);

std::vector<MarkedString> split_lines(const MarkedString& text, bool keep_ends);

// The text padded with spaces to `width` characters.
MarkedString center(Runtime& runtime, const MarkedString& text, int64_t width, std::string_view fill = " ");

}  // namespace tercet::text::jinja
