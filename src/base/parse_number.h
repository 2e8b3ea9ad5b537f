// parse_number: a text that is one number and nothing else. Pure.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace tercet {

// As std::from_chars reads it: a minus sign but no plus, no white space. Nothing where T does not hold it or
// more follows.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace tercet
