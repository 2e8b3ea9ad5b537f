// Package: a model as users name it, opened: its spec, where its weights are, its tokenizer, chat template
// and generation defaults. Nothing is loaded yet but the metadata.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/types.h"
#include "format/metadata.h"
#include "model/decoder_spec.h"
#include "model/package_text.h"
#include "model/weights.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace tercet::model {

// What the model's authors recommend; absent where the file does not say.
struct GenerationDefaults {
  std::optional<float> temperature, top_p, min_p, repetition_penalty;
  std::optional<int> top_k;
};

struct Package {
  std::string path;
  std::string name;          // general.name, else the file's
  std::string type;          // of most weights: "Q4_K"
  int64_t weight_bytes = 0;  // in the file
  DecoderSpec spec;
  TensorSource tensors;
  text::Tokenizer tokenizer;
  std::optional<text::ChatTemplate> chat_template;
  std::vector<std::pair<std::string, std::string>> special_tokens;  // bos_token and so on, for the template
  GenerationDefaults defaults;
  std::optional<core::Pooling> pooling;  // of embeddings; absent: the file names one that is not supported
  std::shared_ptr<const format::Metadata> metadata;
};

// Opens a .gguf file, the first shard of a split one, or a Hugging Face folder. Errors name the file and what
// is wrong with it.
Result<Package> open_package(const std::string& path, const PackageOptions& options = {});

}  // namespace tercet::model
