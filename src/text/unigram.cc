#include "text/unigram.h"

#include <bit>
#include <limits>

#include "text/unicode.h"

namespace tercet::text {
namespace {

constexpr double kUnknownPenalty = 10.0;  // SentencePiece, unigram_model.cc: kUnkPenalty

size_t edge_slot(uint64_t key) {
  key *= 0x9E3779B97F4A7C15;
  return static_cast<size_t>(key ^ (key >> 32));
}

}  // namespace

UnigramModel::UnigramModel(const Vocabulary& vocabulary, const std::vector<float>& scores,
                           const std::array<TokenId, 256>& byte_tokens, TokenId unknown)
    : node_token_(1, kNoToken), scores_(scores), byte_tokens_(byte_tokens), unknown_(unknown) {
  TERCET_CHECK(scores.size() == vocabulary.size());
  size_t bytes = 0;
  float lowest = std::numeric_limits<float>::max();
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    bytes += vocabulary.text(static_cast<TokenId>(id)).size();
    lowest = std::min(lowest, scores[id]);
  }
  has_all_bytes_ = std::find(byte_tokens.begin(), byte_tokens.end(), kNoToken) == byte_tokens.end();
  unknown_score_ = static_cast<double>(lowest) - kUnknownPenalty;
  edges_.resize(std::bit_ceil(std::max<size_t>(bytes * 2, 2)));
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    const auto token = static_cast<TokenId>(id);
    if (token != unknown) add(vocabulary.text(token), token);
  }
}

void UnigramModel::add(std::string_view text, TokenId token) {
  if (text.empty()) return;
  const size_t mask = edges_.size() - 1;
  uint32_t node = 0;
  for (const char c : text) {
    const uint64_t key = static_cast<uint64_t>(node) << 8 | static_cast<unsigned char>(c);
    size_t i = edge_slot(key) & mask;
    while (edges_[i].node != 0 && edges_[i].key != key) i = (i + 1) & mask;
    if (edges_[i].node == 0) {
      edges_[i] = {key, static_cast<uint32_t>(node_token_.size())};
      node_token_.push_back(kNoToken);
    }
    node = edges_[i].node;
  }
  if (node_token_[node] == kNoToken) node_token_[node] = token;
}

uint32_t UnigramModel::child(uint32_t node, unsigned char byte) const {
  const uint64_t key = static_cast<uint64_t>(node) << 8 | byte;
  const size_t mask = edges_.size() - 1;
  for (size_t i = edge_slot(key) & mask; edges_[i].node != 0; i = (i + 1) & mask) {
    if (edges_[i].key == key) return edges_[i].node;
  }
  return 0;
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
      node = child(node, static_cast<unsigned char>(text[end]));
      if (node == 0) break;
      ++end;
      const TokenId token = node_token_[node];
      if (token == kNoToken) continue;
      covers_character |= end - pos == length;
      relax(end, static_cast<double>(scores_[static_cast<size_t>(token)]), token);
    }
    if (!covers_character) relax(pos + length, unknown_score_, kNoToken);
    pos += length;
  }
  const size_t first = out.size();
  for (size_t end = text.size(); end > 0; end = best[end].from) {
    if (best[end].token != kNoToken) {
      out.push_back(best[end].token);
    } else if (has_all_bytes_) {
      for (size_t i = end; i > best[end].from; --i)
        out.push_back(byte_tokens_[static_cast<unsigned char>(text[i - 1])]);
    } else if (unknown_ != kNoToken && (out.size() == first || out.back() != unknown_)) {
      out.push_back(unknown_);
    }
  }
  std::reverse(out.begin() + static_cast<ptrdiff_t>(first), out.end());
}

}  // namespace tercet::text
