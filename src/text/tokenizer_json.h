// Reads Hugging Face's tokenizer.json (the format of the `tokenizers` library 0.23) into a TokenizerSpec. The
// behaviour is that library's; where a GGUF file of the same model would tokenize otherwise, see
// docs/text.md.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/tokenizer_spec.h"

namespace tercet::text {

// `json`: the contents of the file. kCorrupt for what is no valid tokenizer.json, kUnsupported for a part
// that is not built; both name the field. Truncation, padding and dropout are ignored, and the log says so.
Result<TokenizerSpec> tokenizer_spec_from_json(std::string_view json);

}  // namespace tercet::text
