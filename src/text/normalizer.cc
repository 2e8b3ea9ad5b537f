#include "text/normalizer.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "text/unicode.h"

namespace tercet::text {
namespace {

template <class Keep>
std::string filter_chars(std::string_view text, const Keep& keep) {
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const DecodedChar c = decode_utf8(text, pos);
    const size_t length = std::max<size_t>(c.length, 1);
    if (c.length == 0 || keep(c.code_point)) out.append(text, pos, length);
    pos += length;
  }
  return out;
}

// The blocks that BERT's reference tokenizer calls Chinese.
bool is_chinese_char(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

std::string bert_clean(std::string_view text, const NormalizerStep& step) {
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const DecodedChar c = decode_utf8(text, pos);
    const size_t length = std::max<size_t>(c.length, 1);
    const std::string_view bytes = text.substr(pos, length);
    pos += length;
    const uint16_t classes = char_class(c.code_point);
    if (step.clean_text) {
      if (c.length == 0 || c.code_point == 0 || c.code_point == kReplacementCharacter) continue;
      const bool is_plain_space = c.code_point == '\t' || (classes & kNewline) != 0;
      if (step.controls_first && !is_plain_space && (classes == 0 || (classes & (kControl | kFormat))))
        continue;
      if (classes & kSpace) {
        out += ' ';
        continue;
      }
      if (classes & (kControl | kFormat)) continue;
    }
    if (step.handle_chinese_chars && is_chinese_char(c.code_point)) {
      out.append(" ").append(bytes).append(" ");
    } else {
      out.append(bytes);
    }
  }
  return out;
}

std::string_view strip(std::string_view text, bool left, bool right) {
  const auto is_space_at = [&](size_t pos, size_t& length) {
    const DecodedChar c = decode_utf8(text, pos);
    length = c.length;
    return c.length > 0 && (char_class(c.code_point) & kSpace) != 0;
  };
  size_t length = 0;
  while (left && !text.empty() && is_space_at(0, length)) text.remove_prefix(length);
  while (right && !text.empty()) {
    size_t begin = text.size() - 1;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
    if (!is_space_at(begin, length) || begin + length != text.size()) break;
    text.remove_suffix(length);
  }
  return text;
}

std::string collapse_spaces(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

// SentencePiece's precompiled charsmap: a little-endian length, that many bytes of a double array (a "Darts"
// trie over UTF-8, 32-bit units), then the replacement strings, each ended by NUL.
class Charsmap {
 public:
  explicit Charsmap(std::string_view blob) : blob_(blob) {}

  Status check() const {
    if (blob_.size() < 4 || trie_bytes() % 4 != 0 || trie_bytes() == 0 || trie_bytes() > blob_.size() - 4 ||
        blob_.back() != '\0') {
      return Error{
          ErrorCode::kCorrupt,
          fmt::format(
              "the precompiled charsmap of {} bytes is damaged: expected a length, that many bytes of "
              "a double array, and strings that end in NUL",
              blob_.size()),
          {}};
    }
    return {};
  }

  // The longest prefix of `text` that has a replacement; length 0 when none has.
  std::pair<size_t, std::string_view> longest_prefix(std::string_view text) const {
    std::pair<size_t, std::string_view> best = {0, {}};
    uint32_t node = 0;
    uint32_t packed = unit(0);
    node = offset(packed);
    for (size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      if (byte == 0) break;
      node ^= byte;
      packed = unit(node);
      if ((packed & (1U << 31 | 0xFF)) != byte) break;
      node ^= offset(packed);
      if (packed >> 8 & 1) best = {i + 1, replacement(unit(node) & 0x7FFFFFFF)};
    }
    return best;
  }

 private:
  uint32_t trie_bytes() const { return word(0); }
  uint32_t word(size_t at) const {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i)
      value |= static_cast<uint32_t>(static_cast<unsigned char>(blob_[at + i])) << (8 * i);
    return value;
  }
  uint32_t unit(uint32_t index) const { return index < trie_bytes() / 4 ? word(4 + size_t{4} * index) : 0; }
  static uint32_t offset(uint32_t packed) { return (packed >> 10) << ((packed & (1U << 9)) >> 6); }
  std::string_view replacement(uint32_t at) const {
    const std::string_view strings = blob_.substr(4 + size_t{trie_bytes()});
    if (at >= strings.size()) return {};
    return strings.substr(at, strings.find('\0', at) - at);
  }
  std::string_view blob_;
};

std::string apply_charsmap(std::string_view text, std::string_view blob) {
  const Charsmap charsmap(blob);
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const auto [length, replacement] = charsmap.longest_prefix(text.substr(pos));
    if (length > 0) {
      out += replacement;
      pos += length;
    } else {
      const size_t bytes = std::max<size_t>(decode_utf8(text, pos).length, 1);
      out.append(text, pos, bytes);
      pos += bytes;
    }
  }
  return out;
}

std::string replace_matches(std::string_view text, const Splitter& pattern, std::string_view content) {
  std::string out;
  out.reserve(text.size());
  for (const Splitter::Match& match : pattern.matches(text, true)) {
    if (match.matched) {
      out += content;
    } else {
      out.append(text, match.begin, match.end - match.begin);
    }
  }
  return out;
}

std::string prepend(std::string_view text, const NormalizerStep& step, bool is_first) {
  const bool wanted = !text.empty() && (is_first || !step.only_first) &&
                      (step.kind == NormalizerKind::kPrepend || !text.starts_with(step.content));
  return wanted ? step.content + std::string(text) : std::string(text);
}

}  // namespace

Result<Normalizer> Normalizer::create(std::vector<NormalizerStep> steps) {
  Normalizer normalizer;
  for (const NormalizerStep& step : steps) {
    if (step.kind == NormalizerKind::kCharsmap) TERCET_TRY(Charsmap(step.content).check());
    if (step.kind != NormalizerKind::kReplace) continue;
    TERCET_ASSIGN(Splitter pattern, Splitter::create({step.pattern, step.is_regex ? PatternKind::kRegex
                                                                                  : PatternKind::kLiteral}));
    normalizer.patterns_.push_back(std::move(pattern));
  }
  normalizer.steps_ = std::move(steps);
  return normalizer;
}

std::string Normalizer::apply(std::string_view text, bool is_first) const {
  std::string current(text);
  size_t pattern = 0;
  for (const NormalizerStep& step : steps_) {
    switch (step.kind) {
      case NormalizerKind::kNfc: current = normalize(current, NormalForm::kNfc); break;
      case NormalizerKind::kNfd: current = normalize(current, NormalForm::kNfd); break;
      case NormalizerKind::kNfkc: current = normalize(current, NormalForm::kNfkc); break;
      case NormalizerKind::kNfkd: current = normalize(current, NormalForm::kNfkd); break;
      case NormalizerKind::kLowercase: current = lowercase(current); break;
      case NormalizerKind::kStripAccents:
        current = filter_chars(current, [](char32_t c) { return (char_class(c) & kMark) == 0; });
        break;
      case NormalizerKind::kReplace:
        current = replace_matches(current, patterns_[pattern++], step.content);
        break;
      case NormalizerKind::kPrepend:
      case NormalizerKind::kPrependUnless: current = prepend(current, step, is_first); break;
      case NormalizerKind::kStripLeft: current = std::string(strip(current, true, false)); break;
      case NormalizerKind::kStripRight: current = std::string(strip(current, false, true)); break;
      case NormalizerKind::kBert: current = bert_clean(current, step); break;
      case NormalizerKind::kCharsmap: current = apply_charsmap(current, step.content); break;
      case NormalizerKind::kCollapseSpaces: current = collapse_spaces(current); break;
    }
  }
  return current;
}

}  // namespace tercet::text
