// What the encoder of GGUF's metadata and the writer of its files share: how values become bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tercet::format {

template <class T>
std::string_view as_chars(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

// A string as GGUF stores one: the length in 64 bits, then the bytes.
inline void append_string(std::string& out, std::string_view text) {
  const uint64_t size = text.size();
  out += as_chars(std::span<const uint64_t>(&size, 1));
  out += text;
}

}  // namespace tercet::format
