// `tercet tokenize`: what a text or a conversation becomes for a model, token by token, and back.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/package_text.h"

namespace tercet::app {

struct TokenizeOptions {
  enum class Input {
    kText,
    kChat,   // a conversation or a chat request in JSON (text/chat_request.h)
    kIds,    // token ids to turn into text
    kLines,  // JSON values, one a line: a string becomes an array of ids, an array of ids a string
  };
  enum class Output { kTable, kIds, kJson };

  std::string path;  // as model::open_text takes it
  model::PackageOptions package;
  Input input = Input::kText;
  std::string text;
  bool add_special = true;     // kText: BOS and EOS where the tokenizer adds them
  bool parse_special = false;  // kText: special tokens in the text count
  Output output = Output::kTable;
};

// Prints tokens, one a line with its number, id and text, or (kIds) the text, or (kLines) a line for each.
// Errors: what cannot be opened, read as ids or as JSON; a model without a chat template; what the template
// refuses.
Status tokenize(const TokenizeOptions& options, std::ostream& out);

// Numbers with spaces, commas or brackets between them: "1 2 3", "[1, 2, 3]".
Result<std::vector<core::TokenId>> parse_token_ids(std::string_view text);

}  // namespace tercet::app
