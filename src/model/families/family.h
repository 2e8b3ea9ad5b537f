// Model families: each is one file that reads a model's metadata into a DecoderSpec, and one row of the table
// in family.cc.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "format/gguf.h"
#include "model/decoder_spec.h"

namespace tercet::model {

struct Family {
  std::string_view architecture;  // general.architecture in GGUF
  Result<DecoderSpec> (*from_gguf)(const format::GgufFile& file);
};

std::span<const Family> families();

// The spec of a GGUF model, checked. An unknown architecture is an error that lists the known ones.
Result<DecoderSpec> spec_from_gguf(const format::GgufFile& file);

// What most decoders share, under GGUF's keys "ARCH.block_count" and so on: sizes, heads, norm epsilon, and
// one rotary spec for all layers. Layers have full attention.
Result<DecoderSpec> common_spec_from_gguf(const format::GgufFile& file);

Result<DecoderSpec> llama_from_gguf(const format::GgufFile& file);
Result<DecoderSpec> qwen2_from_gguf(const format::GgufFile& file);
Result<DecoderSpec> gemma3_from_gguf(const format::GgufFile& file);

}  // namespace tercet::model
