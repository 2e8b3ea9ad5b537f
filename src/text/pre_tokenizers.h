// The pre-tokenizers that GGUF names in tokenizer.ggml.pre, as llama.cpp defines them (src/llama-vocab.cpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/splitter.h"

namespace tercet::text {

struct PreTokenizer {
  std::vector<SplitPattern> splits;
  bool ignore_merges = false;
  bool adds_bos = false;        // where the file does not say
  bool clean_up_spaces = true;  // when decoding
  bool escapes_spaces = false;  // spaces become U+2581, as SentencePiece has them
  bool characters = false;      // symbols are characters, not bytes
  bool whole_newlines = false;  // a run of newlines that is a token is that token, whatever the merges say
  bool no_default_bos = false;  // no BOS where the file names none
};

// False when `name` is unknown; else `out` is set.
bool find_pre_tokenizer(std::string_view name, PreTokenizer& out);

// Every known name, in alphabetical order.
std::vector<std::string_view> pre_tokenizer_names();

}  // namespace tercet::text
