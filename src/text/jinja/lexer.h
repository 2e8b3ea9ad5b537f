// Lexer: a template's source as tokens, by the rules of Jinja 3.1 with trim_blocks and lstrip_blocks on: line
// ends become
// "\n", one final line end is dropped, a line end after a block tag or comment goes, so does white space
// before one on its line; "-" strips all white space on its side and "+" keeps it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tercet::text::jinja {

struct Token {
  enum class Type {
    kData,  // text outside of tags
    kPrintBegin,
    kPrintEnd,
    kBlockBegin,
    kBlockEnd,
    kName,
    kString,  // text is the value, escapes resolved
    kInteger,
    kFloat,
    kOperator,
    kEnd,
  };
  Type type;
  std::string text;
  uint32_t offset;  // in the normalized source
};

// "\r\n" and "\r" to "\n", without one final "\n": the text that offsets refer to.
std::string normalize_source(std::string_view source);

// Throws TemplateError; the last token is kEnd.
std::vector<Token> tokenize(std::string_view normalized_source);

}  // namespace tercet::text::jinja
