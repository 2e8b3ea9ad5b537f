#include "text/trie.h"

#include <bit>

namespace tercet::text {

Trie::Trie(const Vocabulary& vocabulary, TokenId excluded) : node_token_(1, kNoToken) {
  size_t bytes = 0;
  for (size_t id = 0; id < vocabulary.size(); ++id) bytes += vocabulary.text(static_cast<TokenId>(id)).size();
  edges_.resize(std::bit_ceil(std::max<size_t>(bytes * 2, 2)));
  mask_ = edges_.size() - 1;
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    const auto token = static_cast<TokenId>(id);
    if (token != excluded) add(vocabulary.text(token), token);
  }
}

void Trie::add(std::string_view text, TokenId token) {
  if (text.empty()) return;
  uint32_t node = 0;
  for (const char c : text) {
    const uint64_t key = static_cast<uint64_t>(node) << 8 | static_cast<unsigned char>(c);
    size_t i = slot_of(key);
    while (edges_[i].node != 0 && edges_[i].key != key) i = (i + 1) & mask_;
    if (edges_[i].node == 0) {
      edges_[i] = {key, static_cast<uint32_t>(node_token_.size())};
      node_token_.push_back(kNoToken);
    }
    node = edges_[i].node;
  }
  if (node_token_[node] == kNoToken) node_token_[node] = token;
}

std::optional<uint32_t> Trie::find(std::string_view text) const {
  uint32_t node = 0;
  for (const char c : text) {
    node = child(node, static_cast<unsigned char>(c));
    if (node == 0) return std::nullopt;
  }
  return node;
}

}  // namespace tercet::text
