#include "text/detokenizer.h"

#include "text/unicode.h"

namespace tercet::text {

std::string Detokenizer::push(TokenId token) {
  pending_ += tokenizer_.piece(token, options_);
  const size_t held = incomplete_utf8_suffix(pending_);
  std::string complete =
      replace_invalid_sequences(std::string_view(pending_).substr(0, pending_.size() - held));
  pending_.erase(0, pending_.size() - held);
  return complete;
}

std::string Detokenizer::flush() {
  const bool incomplete = !pending_.empty();
  pending_.clear();
  return incomplete ? std::string(kReplacementUtf8) : std::string();
}

}  // namespace tercet::text
