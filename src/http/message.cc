#include "http/message.h"

#include <algorithm>

namespace tercet::http {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escaped =
        text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0;
    out += escaped ? static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2])) : text[i];
    if (escaped) i += 2;
  }
  return out;
}

}  // namespace

std::string_view Request::header(std::string_view name) const {
  const auto found = std::ranges::find(headers, name, &Headers::value_type::first);
  return found == headers.end() ? std::string_view() : found->second;
}

std::string normalized_path(std::string_view target) {
  target = target.substr(0, target.find_first_of("?#"));
  // RFC 9112, 3.2.2: a server accepts "http://host/path" too.
  if (const size_t scheme = target.find("://"); scheme != target.npos && !target.starts_with('/')) {
    const size_t slash = target.find('/', scheme + 3);
    target = slash == target.npos ? "/" : target.substr(slash);
  }
  std::string path;
  for (const char c : percent_decoded(target)) {
    if (c != '/' || !path.ends_with('/')) path += c;
  }
  if (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

}  // namespace tercet::http
