#include "text/jinja/strings.h"

#include "text/jinja/utf8.h"

namespace tercet::text::jinja {
namespace {

// Whether `chars` holds the code point [begin, end) of `text`, or, where null, whether that is white space.
bool is_stripped(const std::string& text, size_t begin, const CodePoint& c, const MarkedString* chars) {
  if (chars == nullptr) return is_space(c.value);
  const std::string_view wanted = std::string_view(text).substr(begin, c.size);
  for (size_t i = 0; i < chars->size();) {
    const size_t size = code_point_at(chars->bytes(), i).size;
    if (std::string_view(chars->bytes()).substr(i, size) == wanted) return true;
    i += size;
  }
  return false;
}

}  // namespace

MarkedString strip(const MarkedString& text, const MarkedString* chars, Sides sides) {
  const std::string& bytes = text.bytes();
  size_t begin = 0;
  while (sides != Sides::kRight && begin < bytes.size()) {
    const CodePoint c = code_point_at(bytes, begin);
    if (!is_stripped(bytes, begin, c, chars)) break;
    begin += c.size;
  }
  size_t end = bytes.size();
  while (sides != Sides::kLeft && end > begin) {
    size_t last = end - 1;
    while (last > begin && end - last < 4 && (static_cast<unsigned char>(bytes[last]) & 0xC0) == 0x80) --last;
    CodePoint c = code_point_at(bytes, last);
    if (last + c.size != end) c = code_point_at(bytes, last = end - 1);  // not one valid sequence
    if (!is_stripped(bytes, last, c, chars)) break;
    end = last;
  }
  return text.slice(begin, end);
}

MarkedString map_code_points(const MarkedString& text, const std::function<char32_t(char32_t)>& map) {
  MarkedString result;
  std::string buffer;
  for (size_t i = 0; i < text.size();) {
    const auto [c, size] = code_point_at(text.bytes(), i);
    const char32_t mapped = map(c);
    if (mapped == c) {
      result.append(text, i, i + size);
    } else if (c == 0xDF) {
      result.append("SS", text.origin_at(i));  // the one letter in common use whose upper case is two
    } else {
      buffer.clear();
      append_utf8(buffer, mapped);
      result.append(buffer, text.origin_at(i));
    }
    i += size;
  }
  return result;
}

MarkedString upper(const MarkedString& text) { return map_code_points(text, to_upper); }
MarkedString lower(const MarkedString& text) { return map_code_points(text, to_lower); }

MarkedString capitalize(const MarkedString& text) {
  bool is_first = true;
  return map_code_points(
      text, [&](char32_t c) { return std::exchange(is_first, false) ? to_upper(c) : to_lower(c); });
}

MarkedString replace(Runtime& runtime, const MarkedString& text, const MarkedString& from,
                     const MarkedString& to, int64_t count) {
  MarkedString result;
  const std::string& bytes = text.bytes();
  const auto add_replacement = [&] {
    runtime.charge_bytes(to.size());
    runtime.check_string_size(result.size() + to.size());
    result.append(to);
  };
  size_t i = 0;
  for (; count != 0; --count) {
    size_t found = i;
    if (from.empty()) {
      // Before every character and at the end.
      add_replacement();
      if (i >= bytes.size()) break;
      found = i + code_point_at(bytes, i).size;
      result.append(text, i, found);
      i = found;
      continue;
    }
    found = bytes.find(from.bytes(), i);
    if (found == std::string::npos) break;
    result.append(text, i, found);
    add_replacement();
    i = found + from.size();
  }
  result.append(text, std::min(i, bytes.size()), bytes.size());
  return result;
}

std::vector<MarkedString> split_lines(const MarkedString& text, bool keep_ends) {
  std::vector<MarkedString> lines;
  const std::string& bytes = text.bytes();
  size_t begin = 0;
  for (size_t i = 0; i < bytes.size();) {
    const auto [c, size] = code_point_at(bytes, i);
    const size_t end = i;
    i += size;
    if (!is_line_break(c)) continue;
    if (c == '\r' && i < bytes.size() && bytes[i] == '\n') ++i;
    lines.push_back(text.slice(begin, keep_ends ? i : end));
    begin = i;
  }
  if (begin < bytes.size()) lines.push_back(text.slice(begin, bytes.size()));
  return lines;
}

MarkedString center(Runtime& runtime, const MarkedString& text, int64_t width, std::string_view fill) {
  const auto length = static_cast<int64_t>(utf8_length(text.bytes()));
  if (width <= length) return text;
  const auto padding = static_cast<size_t>(width - length);
  runtime.check_string_size(padding);
  runtime.charge_bytes(padding);
  // CPython's rule for where the odd space goes.
  const size_t left = padding / 2 + (padding & static_cast<size_t>(width) & 1);
  MarkedString result;
  for (size_t i = 0; i < left; ++i) result.append(fill, Origin::kTemplate);
  result.append(text);
  for (size_t i = left; i < padding; ++i) result.append(fill, Origin::kTemplate);
  return result;
}

}  // namespace tercet::text::jinja
