// Model families: each is one file that reads a model's metadata into a DecoderSpec, and one row of the table
// in family.cc. Metadata and tensors come under GGUF's keys and names, from whatever file.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "format/metadata.h"
#include "model/decoder_spec.h"
#include "model/tensor_source.h"

namespace tercet::model {

// A model as families read it. What llama.cpp has no key for stands under "tercet." (decisions.md).
struct ModelSource {
  const format::Metadata& metadata;
  const TensorSource& tensors;

  const std::string& path() const { return tensors.path(); }
};

struct Family {
  std::string_view architecture;  // general.architecture in GGUF
  Result<DecoderSpec> (*spec)(const ModelSource& source);
};

std::span<const Family> families();

// The spec of a model, checked. An unknown architecture is an error that lists the known ones.
Result<DecoderSpec> model_spec(const ModelSource& source);

// What most decoders share, under GGUF's keys "ARCH.block_count" and so on: sizes, heads, norm epsilon, and
// one rotary spec for all layers. Layers have full attention.
Result<DecoderSpec> common_spec(const ModelSource& source);

Result<DecoderSpec> llama_spec(const ModelSource& source);
Result<DecoderSpec> qwen2_spec(const ModelSource& source);
Result<DecoderSpec> gemma3_spec(const ModelSource& source);

}  // namespace tercet::model
