// Tokenizers between formats: a folder's tokenizer.json as GGUF's tokenizer.ggml.* keys, and back. Neither
// format says all that the other does, so what was written is compared with the original on texts that differ
// between tokenizers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/metadata.h"

namespace tercet::model {

// Sets the tokenizer keys of `folder`'s tokenizer for a vocabulary of `vocab_size` rows: tokens, types,
// merges or scores, ids, chat template. tokenizer.ggml.pre is recognised by behaviour, unless `pre_tokenizer`
// names one. Without a tokenizer.json, tokenizer.ggml.model is "none" and a note says so. kUnsupported for
// tokenizers that GGUF cannot express, and where no known pre-tokenizer behaves the same.
Status tokenizer_to_gguf(const std::string& folder, int64_t vocab_size, const std::string& pre_tokenizer,
                         format::Metadata& out, std::vector<std::string>& notes);

struct TokenizerFiles {
  std::string tokenizer;      // tokenizer.json
  std::string config;         // tokenizer_config.json
  std::string chat_template;  // chat_template.jinja; "" for none
};
// kUnsupported where tokenizer.json cannot say the same.
Result<TokenizerFiles> tokenizer_from_gguf(const format::Metadata& metadata);

}  // namespace tercet::model
