// What the front end knows of the model behind a generator.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/types.h"
#include "text/model_text.h"

namespace tercet::server {

struct ServedModel {
  std::vector<std::string> names;  // at least one; requests may ask for any of them, answers say the first
  text::ModelText text;
  core::SamplingParams sampling;  // where a request does not say
  int context_length = 0;
  int64_t created = 0;      // seconds since 1970
  std::string fingerprint;  // of what answers depend on, for system_fingerprint
  std::string version;      // of the program
  std::optional<core::Pooling> pooling = core::Pooling::kLast;  // of embeddings; absent: not supported
  int embedding_size = 0;                                       // values of one
};

}  // namespace tercet::server
