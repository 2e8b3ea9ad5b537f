// SentencePiece's unigram language model (Kudo 2018): of all ways to cut a text into tokens the one with the
// greatest sum of log-probabilities, found by Viterbi. Immutable; safe from any thread.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "text/merge.h"
#include "text/trie.h"
#include "text/vocabulary.h"

namespace tercet::text {

class UnigramModel {
 public:
  // `vocabulary` outlives the model; `scores`: natural logarithms, one finite number for each token. A
  // run of characters that no token covers becomes its bytes' tokens if it has all of them, else `unknown`,
  // else nothing.
  UnigramModel(const Vocabulary& vocabulary, std::vector<double> scores,
               const std::array<TokenId, 256>& byte_tokens, TokenId unknown);

  // Time: the text's length times the longest token's, at most.
  void encode(std::string_view text, MergeScratch& scratch, std::vector<TokenId>& out) const;

 private:
  // Appends the tokens of a run of unknown characters, from the last to the first.
  void add_unknown(std::string_view run, std::vector<TokenId>& out) const;

  Trie trie_;
  std::vector<double> scores_;
  std::array<TokenId, 256> byte_tokens_;
  TokenId unknown_;
  double unknown_score_ = 0;
};

}  // namespace tercet::text
