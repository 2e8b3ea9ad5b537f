#include "text/word_piece.h"

#include <algorithm>

namespace tercet::text {

void WordPieceModel::encode(std::string_view word, MergeScratch& scratch, std::vector<TokenId>& out) const {
  const size_t first = out.size();
  const auto is_continuation = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  const auto chars = std::count_if(word.begin(), word.end(), [&](char c) { return !is_continuation(c); });
  bool covered = chars <= max_word_chars_;
  for (size_t begin = 0; covered && begin < word.size();) {
    const std::optional<uint32_t> start = begin > 0 ? continuation_ : begin_;
    TokenId longest = kNoToken;
    size_t end = begin;
    if (start) {
      uint32_t node = *start;
      for (size_t i = begin; i < word.size(); ++i) {
        ++scratch.steps;
        node = trie_.child(node, static_cast<unsigned char>(word[i]));
        if (node == 0) break;
        if (trie_.token(node) != kNoToken) longest = trie_.token(node), end = i + 1;
      }
    }
    covered = longest != kNoToken;
    if (covered) out.push_back(longest);
    begin = end;
  }
  if (covered) return;
  out.resize(first);
  if (unknown_ != kNoToken) out.push_back(unknown_);
}

}  // namespace tercet::text
