// Reads a VocabSpec out of GGUF metadata (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md,
// "Tokenizer"), through getters, so that this folder knows nothing of the file.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/vocab.h"

namespace tercet::text {

// Each getter returns nullopt when the key is missing or of another kind; get_int accepts every integer type,
// get_ints every array of one, get_floats arrays of float32. `contains` tells the two cases apart.
struct MetadataSource {
  std::function<bool(const std::string& key)> contains;
  std::function<std::optional<std::string>(const std::string& key)> get_string;
  std::function<std::optional<int64_t>(const std::string& key)> get_int;
  std::function<std::optional<bool>(const std::string& key)> get_bool;
  std::function<std::optional<std::vector<std::string>>(const std::string& key)> get_strings;
  std::function<std::optional<std::vector<float>>(const std::string& key)> get_floats;
  std::function<std::optional<std::vector<int64_t>>(const std::string& key)> get_ints;
};

// `pre_tokenizer`, if not empty, replaces what the file says in tokenizer.ggml.pre.
// kCorrupt for a missing or misshapen key, kUnsupported for a tokenizer model that is not built; both name
// the key.
Result<VocabSpec> vocab_from_metadata(const MetadataSource& metadata, const std::string& pre_tokenizer = {});

}  // namespace tercet::text
