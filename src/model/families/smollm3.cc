// SmolLM3 (Hugging Face 2025): Llama without positions in every fourth layer, or in those that
// tercet.rope_layers says.
#include <fmt/format.h>

#include "model/families/family.h"

namespace tercet::model {
namespace {

constexpr size_t kNoRopeEvery = 4;

}  // namespace

Result<DecoderSpec> smollm3_spec(const ModelSource& source) {
  TERCET_ASSIGN(DecoderSpec spec, common_spec(source));
  spec.file_interleaves_rotary_pairs = true;
  TERCET_TRY(read_windows(source, 0, spec));
  std::vector<int64_t> rotates;
  for (size_t i = 0; i < spec.layers.size(); ++i) rotates.push_back((i + 1) % kNoRopeEvery != 0);
  if (source.metadata.has("tercet.rope_layers")) {
    TERCET_ASSIGN(rotates, source.metadata.get_ints("tercet.rope_layers", true));
  }
  if (rotates.size() != spec.layers.size())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("has {} flags for {} layers", rotates.size(), spec.layers.size()),
                 "tercet.rope_layers"};
  for (size_t i = 0; i < rotates.size(); ++i)
    if (rotates[i] == 0) spec.layers[i].rope = -1;
  return spec;
}

}  // namespace tercet::model
