#include "text/unigram.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "text/unicode.h"

namespace tercet::text {
namespace {

constexpr double kUnknownPenalty = 10.0;  // SentencePiece, unigram_model.cc: kUnkPenalty

}  // namespace

UnigramModel::UnigramModel(const Vocabulary& vocabulary, std::vector<double> scores,
                           const std::array<TokenId, 256>& byte_tokens, TokenId unknown)
    : trie_(vocabulary, unknown), scores_(std::move(scores)), byte_tokens_(byte_tokens), unknown_(unknown) {
  TERCET_CHECK(scores_.size() == vocabulary.size());
  unknown_score_ = *std::min_element(scores_.begin(), scores_.end()) - kUnknownPenalty;
}

void UnigramModel::encode(std::string_view text, MergeScratch& scratch, std::vector<TokenId>& out) const {
  struct Best {
    double score = -std::numeric_limits<double>::infinity();
    uint32_t from = 0;
    TokenId token = kNoToken;  // kNoToken: an unknown character
  };
  std::vector<Best> best(text.size() + 1);
  best[0].score = 0;
  for (size_t pos = 0; pos < text.size();) {
    const size_t length =
        std::min<size_t>(utf8_length_by_lead(static_cast<unsigned char>(text[pos])), text.size() - pos);
    const auto relax = [&](size_t end, double score, TokenId token) {
      if (best[pos].score + score > best[end].score) {
        best[end] = {best[pos].score + score, static_cast<uint32_t>(pos), token};
      }
    };
    bool covers_character = false;
    uint32_t node = 0;
    for (size_t end = pos; end < text.size();) {
      ++scratch.steps;
      node = trie_.child(node, static_cast<unsigned char>(text[end]));
      if (node == 0) break;
      ++end;
      const TokenId token = trie_.token(node);
      if (token == kNoToken) continue;
      covers_character |= end - pos == length;
      relax(end, scores_[static_cast<size_t>(token)], token);
    }
    if (!covers_character) relax(pos + length, unknown_score_, kNoToken);
    pos += length;
  }
  const size_t first = out.size();
  for (size_t end = text.size(); end > 0; end = best[end].from) {
    if (best[end].token != kNoToken) {
      out.push_back(best[end].token);
      continue;
    }
    size_t begin = best[end].from;
    while (begin > 0 && best[begin].token == kNoToken) begin = best[begin].from;
    add_unknown(text.substr(begin, end - begin), out);
    best[end].from = static_cast<uint32_t>(begin);
  }
  std::reverse(out.begin() + static_cast<ptrdiff_t>(first), out.end());
}

void UnigramModel::add_unknown(std::string_view run, std::vector<TokenId>& out) const {
  const auto byte_token = [this](char c) { return byte_tokens_[static_cast<unsigned char>(c)]; };
  const bool has_all = std::all_of(run.begin(), run.end(), [&](char c) { return byte_token(c) != kNoToken; });
  if (has_all) {
    std::transform(run.rbegin(), run.rend(), std::back_inserter(out), byte_token);
  } else if (unknown_ != kNoToken) {
    out.push_back(unknown_);
  }
}

}  // namespace tercet::text
