// Byte-pair encoding (Sennrich et al. 2016): a word is a row of symbols, bytes or characters, and the
// adjacent pair of lowest rank merges until none can. Immutable; safe from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/merge.h"
#include "text/vocabulary.h"

namespace tercet::text {

struct BpeOptions {
  bool byte_symbols = true;     // a word's first symbols are its bytes (byte-level BPE), else its characters
  bool ignore_merges = false;   // a word that is a token is that token, whatever the merges say
  bool whole_newlines = false;  // the same, for words of newlines only
  // For characters that are no token: their bytes as <0xNN> tokens if all of them exist, else `unknown`, else
  // nothing.
  std::array<TokenId, 256> byte_tokens;
  TokenId unknown = kNoToken;
  bool fuse_unknown = false;  // a run of unknown characters is one `unknown`

  BpeOptions() { byte_tokens.fill(kNoToken); }
};

// left and right merge to result, all of them tokens. Its rank is its place in the list.
struct BpeMerge {
  TokenId left = kNoToken, right = kNoToken, result = kNoToken;
};

class BpeModel {
 public:
  // `vocabulary` outlives the model. Of equal pairs the first counts.
  BpeModel(const Vocabulary& vocabulary, const std::vector<BpeMerge>& merges, BpeOptions options);

  // Appends the tokens of `word`. A byte that is no token is dropped.
  void encode(std::string_view word, MergeScratch& scratch, std::vector<TokenId>& out) const;

 private:
  struct Slot {
    uint64_t pair = kEmpty;
    Merge merge;
  };
  static constexpr uint64_t kEmpty = ~uint64_t{0};

  void encode_word(std::string_view word, MergeScratch& scratch, std::vector<TokenId>& out) const;
  Merge merge_of(TokenId left, TokenId right) const;
  void to_symbols(std::string_view word, MergeScratch& scratch) const;
  void character_symbols(std::string_view word, std::vector<Symbol>& symbols) const;
  void merge(std::string_view word, MergeScratch& scratch) const;

  const Vocabulary& vocabulary_;
  BpeOptions options_;
  std::array<TokenId, 256> single_byte_;  // the token of each byte
  std::vector<Slot> slots_;               // open addressing
  SpaceCuts cuts_;                        // for symbols that are characters
  bool drops_characters_ = false;         // then what stands beside one becomes neighbours
  SelfMergingCache self_merging_;
};

}  // namespace tercet::text
