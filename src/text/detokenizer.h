// Tokens to text as they arrive, in whole characters only: the bytes of a character that is split over tokens
// are held back until it is complete. What can never become a character turns into U+FFFD, one for each
// maximal ill-formed part.
//
// A Detokenizer is a value: keep a copy to return to that point. It refers to its tokenizer, which is
// immutable.
#pragma once

#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace tercet::text {

class Detokenizer {
 public:
  // `options`: whether control tokens are shown.
  explicit Detokenizer(Tokenizer tokenizer, DecodeOptions options = {})
      : tokenizer_(std::move(tokenizer)), options_(options) {}

  // The characters that `token` completes; may be empty. Always valid UTF-8.
  std::string push(TokenId token);
  // The end of the tokens: U+FFFD for a character that is still incomplete, else nothing. The state is empty
  // then.
  std::string flush();

  // Bytes held back, at most 3.
  std::string_view pending() const { return pending_; }

 private:
  Tokenizer tokenizer_;
  DecodeOptions options_;
  std::string pending_;
};

}  // namespace tercet::text
