// The alphabet of byte-level BPE (GPT-2): every byte has a printable character, its own where it is printable
// ASCII or Latin-1, one from U+0100 upwards otherwise. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tercet::text {

// The bytes that `token` spells; nullopt when it holds a character outside the alphabet.
std::optional<std::string> bytes_of_byte_level(std::string_view token);

// The value of "<0xNN>" (two hexadecimal digits, either case); nullopt for any other text.
std::optional<unsigned char> parse_byte_token(std::string_view token);

}  // namespace tercet::text
