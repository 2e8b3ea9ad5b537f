// Text to token ids and back. A Tokenizer is a cheap-to-copy handle on immutable data; every method is safe
// from any thread. Encoding never fails: bytes that are no UTF-8 have a defined result (docs/text.md),
// characters that no token covers become the unknown token or nothing.
//
// Time is O(n log n) in the length of the text at worst (one word of all of it) and linear for ordinary text.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer_spec.h"

namespace tercet::text {

struct EncodeOptions {
  bool add_special = false;  // BOS, EOS and the like where the tokenizer is configured to add them
  bool parse_special =
      false;  // special-token text inside the input becomes the token; off for what users write
};

struct DecodeOptions {
  bool skip_special = false;  // control tokens are left out
};

class Tokenizer {
 public:
  // kInvalidArgument for ids outside the vocabulary, lists of different lengths, expressions that do not
  // compile.
  static Result<Tokenizer> create(TokenizerSpec spec);

  // `steps`, if given, grows by the model's work: symbols, look-ups and heap operations.
  std::vector<TokenId> encode(std::string_view text, EncodeOptions options = {},
                              uint64_t* steps = nullptr) const;

  // The same for a rendered prompt: special tokens count within `spans` of template text, which cover `text`
  // in order, and all else is encoded as one text, across the borders of the spans.
  std::vector<TokenId> encode(std::string_view text, std::span<const TextSpan> spans,
                              bool add_special = false) const;

  // The text of `tokens`; ids outside the vocabulary have none.
  std::string decode(std::span<const TokenId> tokens, DecodeOptions options = {}) const;
  // The bytes of one token, which need not be whole characters: what a stream sends (detokenizer.h makes it
  // whole).
  std::string_view piece(TokenId token, DecodeOptions options = {}) const;

  int vocab_size() const;
  bool is_control(TokenId token) const;
  bool is_end_token(TokenId token) const;
  std::span<const TokenId> end_tokens() const;
  std::optional<TokenId> bos() const;
  std::optional<TokenId> eos() const;
  std::optional<TokenId> pad() const;
  std::optional<FimTokens> fim() const;
  bool adds_bos() const;
  // The token with exactly this text: an added token's content, or else the bytes that a token stands for.
  std::optional<TokenId> token_id(std::string_view text) const;

 private:
  struct Data;
  std::vector<TokenId> encode_at(std::string_view text, const SpecialPlaces& special, bool add_special,
                                 uint64_t* steps) const;
  explicit Tokenizer(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

}  // namespace tercet::text
