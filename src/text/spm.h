// SentencePiece's byte-pair model as llama files hold it: adjacent symbols merge when their joined text is a
// token, the token of highest score first. A character that ends as no token becomes its bytes' <0xNN>
// tokens. Immutable; safe from any thread.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "text/merge.h"
#include "text/vocabulary.h"

namespace tercet::text {

class SpmModel {
 public:
  // `vocabulary` outlives the model. `scores` has one finite number for each token. `byte_tokens`: kNoToken
  // where a byte has none; such a byte becomes `unknown`, or nothing when that is kNoToken too.
  SpmModel(const Vocabulary& vocabulary, const std::vector<double>& scores,
           const std::array<TokenId, 256>& byte_tokens, TokenId unknown);

  // Appends the tokens of `text`, in which U+2581 stands for spaces. Bytes that are no UTF-8 are grouped as
  // their lead byte announces, as llama.cpp does.
  void encode(std::string_view text, MergeScratch& scratch, std::vector<TokenId>& out) const;

 private:
  void encode_word(std::string_view word, MergeScratch& scratch, std::vector<TokenId>& out) const;
  void merge(std::string_view word, MergeScratch& scratch) const;

  const Vocabulary& vocabulary_;
  std::vector<uint32_t> priority_;  // by token: scores in descending order, as integers
  std::array<TokenId, 256> byte_tokens_;
  TokenId unknown_;
  SpaceCuts cuts_;
  SelfMergingCache self_merging_;
};

}  // namespace tercet::text
