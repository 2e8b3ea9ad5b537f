// Tokens that are found in a text before the model sees it: control tokens, chat markers, words a model's
// authors added. Immutable; safe from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/text_span.h"
#include "text/vocabulary.h"

namespace tercet::text {

struct AddedToken {
  TokenId id = kNoToken;
  std::string content;
  bool special = false;      // found only where special tokens are parsed
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space behind it
  bool single_word = false;  // only where no letter or digit touches it
  bool normalized = false;   // searched for in the normalized text, not in the text itself
};

// Which of overlapping occurrences count.
enum class MatchOrder {
  kLongestFirst,     // llama.cpp: all occurrences of the longest token, then of the next in what is left
  kLeftmostLongest,  // Hugging Face: from left to right, at each place the longest
};

// A part of a text: a token that was found, or text between (id kNoToken).
struct Fragment {
  std::string_view text;
  TokenId id = kNoToken;
};

class AddedTokenMatcher {
 public:
  AddedTokenMatcher() = default;
  // Tokens with an empty content are left out; of equal contents the last counts.
  AddedTokenMatcher(std::vector<AddedToken> tokens, MatchOrder order);

  // Appends the fragments of `text`, none empty. Special tokens are found in `special` only. Time: the text's
  // length times the longest token's, at most, and with kLongestFirst times the number of different lengths
  // that occur in the text.
  void split(std::string_view text, const SpecialPlaces& special, std::vector<Fragment>& fragments) const;

  bool empty() const { return tokens_.empty(); }
  bool has_special() const { return has_special_; }
  // The token with exactly this content, or nullptr.
  const AddedToken* find(std::string_view content) const;

 private:
  struct Match {
    size_t begin;
    const AddedToken* token;
    size_t end() const { return begin + token->content.size(); }
  };

  // Calls visit(token) for every token that is a prefix of text.substr(pos), shortest first.
  template <class Visit>
  void for_each_at(std::string_view text, size_t pos, const Visit& visit) const;
  // Whether `token` counts where it was found, at the beginning of `text`.
  static bool enabled(const AddedToken& token, std::string_view text, const SpecialPlaces& special) {
    return !token.special || special.contain(text.substr(0, token.content.size()));
  }
  void split_longest_first(std::string_view text, const SpecialPlaces& special,
                           std::vector<Fragment>& fragments) const;
  // The same, one pass over the text for each length of token.
  void split_in_passes(std::string_view text, const SpecialPlaces& special,
                       std::vector<Fragment>& fragments) const;
  void split_leftmost(std::string_view text, const SpecialPlaces& special,
                      std::vector<Fragment>& fragments) const;

  std::vector<AddedToken> tokens_;  // by content
  std::array<uint32_t, 257> first_byte_ =
      {};                // tokens that begin with byte b: [first_byte_[b], first_byte_[b + 1])
  bool strips_ = false;  // some token takes white space
  bool has_special_ = false;
  MatchOrder order_ = MatchOrder::kLongestFirst;
};

}  // namespace tercet::text
