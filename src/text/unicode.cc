#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/check.h"

namespace tercet::text {
namespace {

bool is_continuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

bool is_white_space(char32_t c) {
  return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

uint16_t class_of_category(utf8proc_category_t category) {
  switch (category) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT: return kUpper | kWordChar;
    case UTF8PROC_CATEGORY_LL: return kLower | kWordChar;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return kOtherLetter | kWordChar;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME: return kMark | kWordChar;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL: return kNumber | kWordChar;
    case UTF8PROC_CATEGORY_NO: return kNumber;
    case UTF8PROC_CATEGORY_PC: return kPunctuation | kWordChar;
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return kPunctuation;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO: return kSymbol;
    case UTF8PROC_CATEGORY_CC: return kControl;
    case UTF8PROC_CATEGORY_CF: return kFormat;
    default: return 0;
  }
}

constexpr uint16_t ascii_class(unsigned char c) {
  if (c >= 'a' && c <= 'z') return kLower | kWordChar;
  if (c >= 'A' && c <= 'Z') return kUpper | kWordChar;
  if (c >= '0' && c <= '9') return kNumber | kWordChar;
  if (c == '_') return kPunctuation | kWordChar;
  if (c == '\n' || c == '\r') return kSpace | kControl | kNewline;
  if (c >= 9 && c <= 13) return kSpace | kControl;
  if (c == ' ') return kSpace;
  if (c < 32 || c == 127) return kControl;
  return std::string_view("$+<=>^`|~").find(static_cast<char>(c)) != std::string_view::npos ? kSymbol
                                                                                            : kPunctuation;
}

constexpr std::array<uint16_t, 128> kAsciiClasses = [] {
  std::array<uint16_t, 128> table{};
  for (size_t c = 0; c < table.size(); ++c) table[c] = ascii_class(static_cast<unsigned char>(c));
  return table;
}();

// Length of the maximal subpart at `pos`, where no well-formed character begins: at least 1.
size_t maximal_subpart(std::string_view text, size_t pos) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(pos);
  if (lead < 0xC2 || lead > 0xF4) return 1;
  const size_t announced = utf8_length_by_lead(lead);
  const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (pos + 1 >= text.size() || byte(pos + 1) < low || byte(pos + 1) > high) return 1;
  size_t length = 2;
  while (length < announced && pos + length < text.size() && is_continuation(byte(pos + length))) ++length;
  return length;
}

template <class Length>
std::string replace_invalid(std::string_view text, Length invalid_length) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (size_t pos = 0; pos < text.size();) {
    const DecodedChar c = decode_utf8(text, pos);
    if (c.length > 0) {
      out.append(text, pos, c.length);
      pos += c.length;
    } else {
      out.append(kReplacementUtf8);
      pos += invalid_length(text, pos);
    }
  }
  return out;
}

// In NFC whatever precedes it, so a boundary: a starter that neither decomposes nor composes with what
// precedes.
bool is_nfc_stable(char32_t c) {
  if (c < 0x300 || (c >= 0xAC00 && c <= 0xD7A3)) return true;
  if (c >= 0x1160 && c <= 0x11FF) return false;  // Hangul vowels and final consonants compose by rule
  const utf8proc_property_t* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(c));
  const bool composes_as_second = property->comb_index != UINT16_MAX && property->comb_index >= 0x8000;
  return property->combining_class == 0 && property->decomp_seqindex == UINT16_MAX && !composes_as_second;
}

// Appends the normal form of `text`. Marks are ordered by a stable sort: utf8proc's own ordering is quadratic
// in the length of a run of marks.
void normalize_segment(std::string_view text, int options, bool compose, std::string& out) {
  std::vector<utf8proc_int32_t> code_points;
  for (size_t pos = 0; pos < text.size();) {
    const DecodedChar c = decode_utf8(text, pos);
    pos += std::max<size_t>(c.length, 1);
    if (c.length == 0) continue;
    std::array<utf8proc_int32_t, 32> decomposed;  // Unicode's longest mapping has 18
    const auto count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c.code_point), decomposed.data(),
                                decomposed.size(), static_cast<utf8proc_option_t>(options), nullptr);
    TERCET_CHECK(count >= 0 && static_cast<size_t>(count) <= decomposed.size());
    code_points.insert(code_points.end(), decomposed.begin(), decomposed.begin() + count);
  }
  const auto rank = [](utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; };
  for (auto run = code_points.begin(); run != code_points.end();) {
    if (rank(*run) == 0) {
      ++run;
      continue;
    }
    const auto end = std::find_if(run, code_points.end(), [&](utf8proc_int32_t c) { return rank(c) == 0; });
    std::stable_sort(run, end, [&](utf8proc_int32_t a, utf8proc_int32_t b) { return rank(a) < rank(b); });
    run = end;
  }
  auto size = static_cast<utf8proc_ssize_t>(code_points.size());
  if (compose) {
    size = utf8proc_normalize_utf32(code_points.data(), size,
                                    static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  }
  for (utf8proc_ssize_t i = 0; i < size; ++i) append_utf8(static_cast<char32_t>(code_points[i]), out);
}

}  // namespace

DecodedChar decode_utf8(std::string_view text, size_t pos) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data()) + pos;
  const size_t available = text.size() - pos;
  const unsigned char lead = bytes[0];
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xC2 || lead > 0xF4) return {};
  if (lead < 0xE0) {
    if (available < 2 || !is_continuation(bytes[1])) return {};
    return {static_cast<char32_t>((lead & 0x1F) << 6 | (bytes[1] & 0x3F)), 2};
  }
  if (lead < 0xF0) {
    if (available < 3 || !is_continuation(bytes[1]) || !is_continuation(bytes[2])) return {};
    const char32_t c = (lead & 0x0F) << 12 | (bytes[1] & 0x3F) << 6 | (bytes[2] & 0x3F);
    if (c < 0x800 || (c >= 0xD800 && c < 0xE000)) return {};
    return {c, 3};
  }
  if (available < 4 || !is_continuation(bytes[1]) || !is_continuation(bytes[2]) || !is_continuation(bytes[3]))
    return {};
  const char32_t c =
      (lead & 0x07) << 18 | (bytes[1] & 0x3F) << 12 | (bytes[2] & 0x3F) << 6 | (bytes[3] & 0x3F);
  if (c < 0x10000 || c > 0x10FFFF) return {};
  return {c, 4};
}

void append_utf8(char32_t c, std::string& out) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
  } else if (c < 0x10000) {
    out += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3F)),
            static_cast<char>(0x80 | (c & 0x3F))};
  } else {
    out += {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 0x3F)),
            static_cast<char>(0x80 | (c >> 6 & 0x3F)), static_cast<char>(0x80 | (c & 0x3F))};
  }
}

size_t incomplete_utf8_suffix(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const size_t pos = text.size() - back;
    const auto byte = static_cast<unsigned char>(text[pos]);
    if (is_continuation(byte)) continue;
    const bool could_continue = utf8_length_by_lead(byte) > back && byte >= 0xC2 && byte <= 0xF4;
    return could_continue && maximal_subpart(text, pos) == back ? back : 0;
  }
  return 0;
}

bool is_valid_utf8(std::string_view text) {
  for (size_t pos = 0; pos < text.size();) {
    if (static_cast<unsigned char>(text[pos]) < 0x80) {
      ++pos;
      continue;
    }
    const DecodedChar c = decode_utf8(text, pos);
    if (c.length == 0) return false;
    pos += c.length;
  }
  return true;
}

std::string replace_invalid_bytes(std::string_view text) {
  return replace_invalid(text, [](std::string_view, size_t) { return size_t{1}; });
}

std::string replace_invalid_sequences(std::string_view text) {
  return replace_invalid(text, maximal_subpart);
}

uint16_t char_class(char32_t c) {
  if (c < 128) return kAsciiClasses[c];
  const uint16_t space = is_white_space(c) ? kSpace : 0;
  // Symbols that are alphabetic (circled letters), and the joiners.
  const bool is_word = (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
                       (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189) || c == 0x200C ||
                       c == 0x200D;
  return class_of_category(utf8proc_category(static_cast<utf8proc_int32_t>(c))) | space |
         (is_word ? kWordChar : 0);
}

std::string normalize(std::string_view text, NormalForm form) {
  const bool compose = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  const bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  const int options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
  if (form != NormalForm::kNfc) {
    std::string out;
    normalize_segment(text, options, compose, out);
    return out;
  }
  // A segment is one character and all that may change with it: only those of more than one character need
  // work.
  std::string out;
  out.reserve(text.size());
  for (size_t begin = 0; begin < text.size();) {
    const DecodedChar first = decode_utf8(text, begin);
    size_t end = begin + std::max<size_t>(first.length, 1);
    bool stable = is_nfc_stable(first.code_point);
    for (DecodedChar next; end < text.size(); end += next.length) {
      next = decode_utf8(text, end);
      if (next.length == 0 || is_nfc_stable(next.code_point)) break;
      stable = false;
    }
    if (stable) {
      out.append(text, begin, end - begin);
    } else {
      normalize_segment(text.substr(begin, end - begin), options, true, out);
    }
    begin = end;
  }
  return out;
}

std::string lowercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const DecodedChar c = decode_utf8(text, pos);
    if (c.length == 0) {
      out += text[pos++];
      continue;
    }
    pos += c.length;
    if (c.code_point == 0x130) {
      out += "i\xCC\x87";
    } else {
      append_utf8(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c.code_point))), out);
    }
  }
  return out;
}

}  // namespace tercet::text
