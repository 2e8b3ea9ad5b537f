// A trie over token texts, byte by byte: every token that begins at a place, in one walk.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace tercet::text {

// Edges lie in one open-addressing table; node 0 is the root and no node's child.
class Trie {
 public:
  // Over the tokens of `vocabulary` that are not `excluded`. Of equal texts the first counts.
  explicit Trie(const Vocabulary& vocabulary, TokenId excluded = kNoToken);

  // 0 where no token goes on with `byte`.
  uint32_t child(uint32_t node, unsigned char byte) const {
    const uint64_t key = static_cast<uint64_t>(node) << 8 | byte;
    for (size_t i = slot_of(key); edges_[i].node != 0; i = (i + 1) & mask_) {
      if (edges_[i].key == key) return edges_[i].node;
    }
    return 0;
  }
  // The token whose text ends at `node`, or kNoToken.
  TokenId token(uint32_t node) const { return node_token_[node]; }
  // The node behind `text`, which begins at the root; absent where no token has it as a prefix.
  std::optional<uint32_t> find(std::string_view text) const;

 private:
  struct Edge {
    uint64_t key = ~uint64_t{0};  // node << 8 | byte
    uint32_t node = 0;
  };
  size_t slot_of(uint64_t key) const {
    key *= 0x9E3779B97F4A7C15;  // Fibonacci hashing
    return static_cast<size_t>(key ^ (key >> 32)) & mask_;
  }
  void add(std::string_view text, TokenId token);

  std::vector<Edge> edges_;
  std::vector<TokenId> node_token_;
  size_t mask_ = 0;
};

}  // namespace tercet::text
