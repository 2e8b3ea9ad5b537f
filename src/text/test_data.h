// For the tests of this folder: compressed test data, vocabularies and golden lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"
#include "text/vocab.h"
#include "text/vocab_gguf.h"

namespace tercet::text {

// The contents of an .xz file below tests/data. Fails the program when there is none.
std::string read_xz(const std::string& relative_path);

// A vocabulary of tests/data/vocab by its name there; read once per process.
const Tokenizer& test_tokenizer(const std::string& name);

// A tokenizer.json of tests/data/tokenizers by its folder's name.
const Tokenizer& test_json_tokenizer(const std::string& name);

// Metadata given as a JSON object, as vocab/make.py writes it.
MetadataSource metadata_from_json(std::string_view json);

struct GoldenLine {
  std::string name, text;
  bool add_special = false, parse_special = false;
  std::vector<TokenId> ids;
  std::string decoded, pieces;  // pieces: the joined pieces of the single tokens
  std::string decoded_skip_special;
};
// tests/data/tokenize/NAME.jsonl.xz
std::vector<GoldenLine> golden_lines(const std::string& name);

}  // namespace tercet::text
