// The text side of a model's files: the tokenizer, the chat template and the names of the special tokens.
#pragma once

#include <string>

#include "base/result.h"
#include "format/metadata.h"
#include "text/model_text.h"

namespace tercet::model {

struct PackageOptions {
  std::string pre_tokenizer;  // in place of the file's tokenizer.ggml.pre
  std::string chat_template;  // in place of the file's
};

// From GGUF metadata. A template of the file's that does not parse is left out with a warning; one of
// `options` is an error. Errors name the file and the key.
Result<text::ModelText> text_from_metadata(const format::Metadata& metadata, const PackageOptions& options);

// `path`: a GGUF file, of which only the tokenizer has to be there; a tokenizer.json; a folder that holds
// one.
Result<text::ModelText> open_text(const std::string& path, const PackageOptions& options = {});

}  // namespace tercet::model
