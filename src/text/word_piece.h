// WordPiece, as BERT uses it: the longest token at each place of a word, or the unknown token for the whole
// word. Immutable; safe from any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/merge.h"
#include "text/vocabulary.h"

namespace tercet::text {

class WordPieceModel {
 public:
  // `vocabulary` outlives the model. `begin` is put before the first part of a word, `continuation` before
  // the others:
  // "" and "##" in BERT's own files, U+2581 and "" in GGUF.
  WordPieceModel(const Vocabulary& vocabulary, std::string begin, std::string continuation,
                 int max_word_chars, TokenId unknown)
      : vocabulary_(vocabulary),
        begin_(std::move(begin)),
        continuation_(std::move(continuation)),
        max_word_chars_(max_word_chars),
        unknown_(unknown) {}

  void encode(std::string_view word, MergeScratch& scratch, std::vector<TokenId>& out) const;

 private:
  const Vocabulary& vocabulary_;
  std::string begin_, continuation_;
  int max_word_chars_;
  TokenId unknown_;
};

}  // namespace tercet::text
