#include "text/byte_level.h"

#include <array>

#include "text/unicode.h"

namespace tercet::text {
namespace {

constexpr bool is_own_character(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

constexpr int kAlphabetEnd = 0x100 + 68;  // 68 bytes have no character of their own

// By code point below kAlphabetEnd: the byte, or -1.
constexpr std::array<int16_t, kAlphabetEnd> kByteOf = [] {
  std::array<int16_t, kAlphabetEnd> table{};
  for (auto& entry : table) entry = -1;
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    table[static_cast<size_t>(is_own_character(byte) ? byte : next++)] = static_cast<int16_t>(byte);
  }
  return table;
}();

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::optional<std::string> bytes_of_byte_level(std::string_view token) {
  std::string out;
  out.reserve(token.size());
  for (size_t pos = 0; pos < token.size();) {
    const DecodedChar c = decode_utf8(token, pos);
    if (c.length == 0 || c.code_point >= kAlphabetEnd || kByteOf[c.code_point] < 0) return std::nullopt;
    out += static_cast<char>(kByteOf[c.code_point]);
    pos += c.length;
  }
  return out;
}

std::optional<unsigned char> parse_byte_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const int high = hex_digit(token[3]), low = hex_digit(token[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<unsigned char>(high * 16 + low);
}

}  // namespace tercet::text
