// TokenStream: the parser's place among the tokens, and how far it has nested.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/error.h"
#include "text/jinja/lexer.h"
#include "text/jinja/limits.h"

namespace tercet::text::jinja {

class TokenStream {
 public:
  explicit TokenStream(const std::vector<Token>& tokens) : tokens_(tokens) {}

  // The last token is kEnd, and next() stays on it.
  const Token& peek(size_t ahead = 0) const {
    return tokens_[std::min(position_ + ahead, tokens_.size() - 1)];
  }
  const Token& next() {
    const Token& token = peek();
    if (position_ + 1 < tokens_.size()) ++position_;
    return token;
  }
  size_t position() const { return position_; }
  // Whether the name occurs among the tokens from `begin` up to here.
  bool has_name_since(size_t begin, std::string_view name) const {
    for (size_t i = begin; i < position_; ++i) {
      if (tokens_[i].type == Token::Type::kName && tokens_[i].text == name) return true;
    }
    return false;
  }
  uint32_t offset() const { return peek().offset; }

  bool is(Token::Type type) const { return peek().type == type; }
  bool is(Token::Type type, std::string_view text) const { return is(type) && peek().text == text; }
  bool is_operator(std::string_view text) const { return is(Token::Type::kOperator, text); }
  bool is_name(std::string_view text) const { return is(Token::Type::kName, text); }

  bool take_operator(std::string_view text) { return is_operator(text) && (next(), true); }
  bool take_name(std::string_view text) { return is_name(text) && (next(), true); }

  void expect_operator(std::string_view text) {
    if (!take_operator(text)) unexpected("'" + std::string(text) + "'");
  }
  void expect_name(std::string_view text) {
    if (!take_name(text)) unexpected("'" + std::string(text) + "'");
  }
  void expect(Token::Type type, std::string_view description) {
    if (!is(type)) unexpected(description);
    next();
  }
  const std::string& expect_identifier() {
    if (!is(Token::Type::kName)) unexpected("a name");
    return next().text;
  }

  [[noreturn]] void unexpected(std::string_view expected) const {
    fail_syntax(offset(), "expected " + std::string(expected) + ", found " + describe(peek()));
  }
  static std::string describe(const Token& token);

  // Bounds the recursion of the parser.
  class Nested {
   public:
    explicit Nested(TokenStream& stream) : stream_(stream) {
      if (++stream_.depth_ > kMaxSyntaxDepth) {
        fail_syntax(stream.offset(), "nested more than " + std::to_string(kMaxSyntaxDepth) + " levels deep",
                    ErrorCode::kExhausted);
      }
    }
    ~Nested() { --stream_.depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    TokenStream& stream_;
  };

 private:
  const std::vector<Token>& tokens_;
  size_t position_ = 0;
  size_t depth_ = 0;
};

}  // namespace tercet::text::jinja
