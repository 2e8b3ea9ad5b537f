// What a tokenizer does, as plain data: one pipeline that every tokenizer file configures.
//
//   text -> added tokens are found -> normalizer -> (added tokens in the normalized text) -> splits and
//   rewrites -> model
//        -> prefix and suffix
//
// vocab.h makes one from a GGUF vocabulary, tokenizer_json.h from a tokenizer.json.
#pragma once

#include <string>
#include <vector>

#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/normalizer.h"
#include "text/splitter.h"
#include "text/vocabulary.h"

namespace tercet::text {

enum class ModelKind { kBpe, kSpm, kUnigram, kWordPiece };

// What decode() makes of bytes that are no UTF-8.
enum class InvalidBytes {
  kKeep,              // llama.cpp
  kReplaceSequences,  // one U+FFFD for each maximal ill-formed part (Hugging Face's byte-level decoder)
  kReplaceByteRuns,   // a run of byte tokens that is no UTF-8 as a whole is one U+FFFD for each byte
                      // (ByteFallback)
};

// What a pre-tokenizer changes in each piece of the text.
struct PieceRewrite {
  size_t before_split = 0;  // made before this one of `splits`, or behind the last
  NormalizerStep step;
};

// Fill in the middle: prefix, text before the gap, suffix, text behind it, middle; the model goes on with
// what belongs into the gap. All three or none.
struct FimTokens {
  TokenId prefix = kNoToken, suffix = kNoToken, middle = kNoToken;
};

struct TokenizerSpec {
  ModelKind model = ModelKind::kBpe;
  // By token id, all of one length, where they are not empty:
  std::vector<std::string> texts;  // as the model matches it (bytes for byte-level BPE); empty: never matched
  std::vector<std::string> pieces;        // the bytes it decodes to
  std::vector<std::string> first_pieces;  // at the beginning of a text; empty: the same
  std::vector<uint8_t> is_control;        // not shown where special tokens are skipped
  std::vector<uint8_t> is_byte;  // decodes to one byte of a character (kReplaceByteRuns); may be empty
  std::vector<double> scores;    // kSpm, kUnigram

  BpeOptions bpe;  // byte tokens and `unknown` serve kSpm and kUnigram too
  std::vector<BpeMerge> merges;
  std::string word_begin, word_continuation = "##";  // kWordPiece
  int max_word_chars = 100;                          // kWordPiece: a longer word is unknown

  bool replace_invalid_bytes =
      true;  // every byte of the text that is no UTF-8 becomes U+FFFD before anything else
  std::vector<AddedToken> added_tokens;
  MatchOrder match_order = MatchOrder::kLongestFirst;
  std::vector<NormalizerStep> normalizer;
  std::vector<SplitPattern> splits;  // each splits the pieces of the one before
  std::vector<PieceRewrite> rewrites;
  std::vector<TokenId> prefix, suffix;  // add_special

  bool strip_leading_space = false;  // decode() drops one space at the beginning
  bool clean_up_spaces = false;      // decode() drops the space before . , ? ! and some English contractions
  InvalidBytes invalid_bytes = InvalidBytes::kKeep;

  TokenId bos = kNoToken, eos = kNoToken, pad = kNoToken;
  FimTokens fim;
  std::vector<TokenId> end_tokens;  // end the generation, `eos` included
};

}  // namespace tercet::text
