// The tokenizer and chat template of a Hugging Face model folder, from the files that `transformers` writes:
//
//   tokenizer.json               the tokenizer (tokenizer_json.h)
//   tokenizer_config.json        names of the special tokens, whether BOS and EOS are added, the chat
//   template special_tokens_map.json      names of special tokens that the config does not have
//   chat_template.jinja          the chat template; it wins over the config's
//   additional_chat_templates/tool_use.jinja, chat_template.json
//
// All but the first may be missing.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "text/model_text.h"

namespace tercet::text {

struct HfTokenizerOptions {
  std::string chat_template = {};             // in place of the folder's
  std::vector<TokenId> more_end_tokens = {};  // besides eos_token: those of generation_config.json
};

// `path`: such a folder, or a tokenizer.json (of any name), whose folder may hold the other files. A template
// of the folder's that does not parse is left out with a warning. Errors name the file and the field.
Result<ModelText> open_hf_tokenizer(const std::string& path, const HfTokenizerOptions& options = {});

// Whether `path` is a folder with a tokenizer.json, or a file whose name ends in .json.
bool is_hf_tokenizer(const std::string& path);

}  // namespace tercet::text
