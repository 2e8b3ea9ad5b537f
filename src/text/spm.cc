#include "text/spm.h"

#include <bit>

#include "text/unicode.h"

namespace tercet::text {
namespace {

// Maps descending floats to ascending integers: 0 for the greatest.
uint32_t descending_key(float score) {
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 is 0
  const uint32_t ascending = bits & 0x80000000 ? ~bits : bits | 0x80000000;
  return ~ascending;
}

}  // namespace

SpmModel::SpmModel(const Vocabulary& vocabulary, const std::vector<double>& scores,
                   const std::array<TokenId, 256>& byte_tokens, TokenId unknown)
    : vocabulary_(vocabulary),
      byte_tokens_(byte_tokens),
      unknown_(unknown),
      cuts_(vocabulary),
      self_merging_(vocabulary.size()) {
  TERCET_CHECK(scores.size() == vocabulary.size());
  priority_.reserve(scores.size());
  for (const double score : scores) priority_.push_back(descending_key(static_cast<float>(score)));
}

void SpmModel::merge(std::string_view word, MergeScratch& scratch) const {
  scratch.symbols.clear();
  for (size_t pos = 0; pos < word.size();) {
    const size_t length =
        std::min<size_t>(utf8_length_by_lead(static_cast<unsigned char>(word[pos])), word.size() - pos);
    const TokenId token = vocabulary_.find(word.substr(pos, length));
    scratch.symbols.push_back({token, static_cast<uint32_t>(pos), static_cast<uint32_t>(length)});
    pos += length;
  }
  merge_symbols(scratch, [&](const Symbol& left, const Symbol& right) -> Merge {
    const TokenId token = vocabulary_.find(word.substr(left.begin, left.bytes + right.bytes));
    return token == kNoToken ? kNoMerge : Merge{priority_[static_cast<size_t>(token)], token};
  });
}

void SpmModel::encode_word(std::string_view word, MergeScratch& scratch, std::vector<TokenId>& out) const {
  const TokenId whole = vocabulary_.find(word);
  ++scratch.steps;
  if (whole != kNoToken && self_merging_.get(whole, [&] {
        merge(word, scratch);
        return scratch.symbols.size() == 1;
      })) {
    return out.push_back(whole);
  }
  merge(word, scratch);
  for (const Symbol& symbol : scratch.symbols) {
    if (symbol.token != kNoToken) {
      out.push_back(symbol.token);
      continue;
    }
    for (const char c : word.substr(symbol.begin, symbol.bytes)) {
      const TokenId byte = byte_tokens_[static_cast<unsigned char>(c)];
      if (byte != kNoToken || unknown_ != kNoToken) out.push_back(byte != kNoToken ? byte : unknown_);
    }
  }
}

void SpmModel::encode(std::string_view text, MergeScratch& scratch, std::vector<TokenId>& out) const {
  // In ill-formed text a character may swallow a part of the U+2581 behind it.
  if (!is_valid_utf8(text)) return encode_word(text, scratch, out);
  cuts_.for_each_word(text, [&](std::string_view word) { encode_word(word, scratch, out); });
}

}  // namespace tercet::text
