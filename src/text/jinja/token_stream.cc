#include "text/jinja/token_stream.h"

namespace tercet::text::jinja {

std::string TokenStream::describe(const Token& token) {
  switch (token.type) {
    case Token::Type::kData: return "text";
    case Token::Type::kPrintBegin: return "'{{'";
    case Token::Type::kPrintEnd: return "'}}'";
    case Token::Type::kBlockBegin: return "'{%'";
    case Token::Type::kBlockEnd: return "'%}'";
    case Token::Type::kString: return "a string";
    case Token::Type::kEnd: return "the end of the template";
    default: return "'" + token.text + "'";
  }
}

}  // namespace tercet::text::jinja
