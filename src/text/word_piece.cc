#include "text/word_piece.h"

#include <algorithm>

namespace tercet::text {

void WordPieceModel::encode(std::string_view word, MergeScratch& scratch, std::vector<TokenId>& out) const {
  const size_t first = out.size();
  const auto is_continuation = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  const auto chars = std::count_if(word.begin(), word.end(), [&](char c) { return !is_continuation(c); });
  bool covered = chars <= max_word_chars_;
  for (size_t begin = 0; covered && begin < word.size();) {
    std::string candidate = begin > 0 ? continuation_ : begin_;
    const size_t prefix = candidate.size();
    candidate.append(word, begin, std::min(word.size() - begin, vocabulary_.max_text_bytes()));
    TokenId token = kNoToken;
    for (; candidate.size() > prefix; candidate.pop_back()) {
      ++scratch.steps;
      token = vocabulary_.find(candidate);
      if (token != kNoToken) break;
    }
    covered = token != kNoToken;
    if (covered) out.push_back(token);
    begin += candidate.size() - prefix;
  }
  if (covered) return;
  out.resize(first);
  if (unknown_ != kNoToken) out.push_back(unknown_);
}

}  // namespace tercet::text
