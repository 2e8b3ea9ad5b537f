// What a model needs to turn conversations into tokens and tokens into text, whatever files it came from.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace tercet::text {

struct ModelText {
  Tokenizer tokenizer;
  std::optional<ChatTemplate> chat_template;
  std::vector<std::pair<std::string, std::string>> special_tokens;  // bos_token and so on, for the template
};

}  // namespace tercet::text
