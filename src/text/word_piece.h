// WordPiece, as BERT uses it: the longest token at each place of a word, or the unknown token for the whole
// word. Immutable; safe from any thread.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "text/merge.h"
#include "text/trie.h"
#include "text/vocabulary.h"

namespace tercet::text {

class WordPieceModel {
 public:
  // `begin` is put before the first part of a word, `continuation` before
  // the others:
  // "" and "##" in BERT's own files, U+2581 and "" in GGUF.
  WordPieceModel(const Vocabulary& vocabulary, std::string_view begin, std::string_view continuation,
                 int max_word_chars, TokenId unknown)
      : trie_(vocabulary),
        begin_(trie_.find(begin)),
        continuation_(trie_.find(continuation)),
        max_word_chars_(max_word_chars),
        unknown_(unknown) {}

  // Time: the word's length times the longest token's, at most.
  void encode(std::string_view word, MergeScratch& scratch, std::vector<TokenId>& out) const;

 private:
  Trie trie_;
  std::optional<uint32_t> begin_, continuation_;  // nodes behind these texts; absent: no token has them
  int max_word_chars_;
  TokenId unknown_;
};

}  // namespace tercet::text
