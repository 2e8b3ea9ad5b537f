// UTF-8 and the Unicode properties that tokenizers ask for. Pure functions, safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tercet::text {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;
inline constexpr std::string_view kReplacementUtf8 = "\xEF\xBF\xBD";
// U+2581, what SentencePiece writes for a space.
inline constexpr std::string_view kMetaspace = "\xE2\x96\x81";

// One decoded character. length 0: the bytes at that place do not begin a well-formed character (Unicode 15,
// table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF).
struct DecodedChar {
  char32_t code_point = 0;
  uint32_t length = 0;
};

// `pos` < text.size().
DecodedChar decode_utf8(std::string_view text, size_t pos);
void append_utf8(char32_t code_point, std::string& out);

// Bytes of the character that `lead` announces, 1 for a byte that announces none. Checks nothing.
inline uint32_t utf8_length_by_lead(unsigned char lead) {
  return lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

// At the end of a stream: how many of the last bytes (0 to 3) begin a character that more bytes could still
// complete.
size_t incomplete_utf8_suffix(std::string_view text);

bool is_valid_utf8(std::string_view text);
// Every byte that is no part of a well-formed character becomes U+FFFD.
std::string replace_invalid_bytes(std::string_view text);
// Every maximal subpart of an ill-formed sequence becomes one U+FFFD (Unicode 15, section 3.9, the practice
// of W3C).
std::string replace_invalid_sequences(std::string_view text);

// Bits of char_class().
enum CharClass : uint16_t {
  kUpper = 1 << 0,        // Lu, Lt
  kLower = 1 << 1,        // Ll
  kOtherLetter = 1 << 2,  // Lm, Lo
  kMark = 1 << 3,
  kNumber = 1 << 4,
  kPunctuation = 1 << 5,
  kSymbol = 1 << 6,
  kSpace = 1 << 7,      // the property White_Space
  kControl = 1 << 8,    // Cc
  kFormat = 1 << 9,     // Cf
  kNewline = 1 << 10,   // CR and LF
  kWordChar = 1 << 11,  // alphabetic, marks, decimal digits, connectors and joiners: \w of Unicode's TS 18
  kLetter = kUpper | kLower | kOtherLetter,
};
uint16_t char_class(char32_t code_point);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
// `text` is valid UTF-8.
std::string normalize(std::string_view text, NormalForm form);
// Simple lower-case mapping of every character, with U+0130 becoming "i" and a combining dot.
std::string lowercase(std::string_view text);

}  // namespace tercet::text
