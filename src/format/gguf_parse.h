// The bytes of one GGUF file, checked and laid out: what GgufFile is built from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/gguf.h"

namespace tercet::format {

inline constexpr uint32_t kGgufDefaultAlignment = 32;
inline constexpr int kGgufMaxDims = 4;

struct GgufContents {
  uint32_t version = 0;
  Metadata metadata;
  std::vector<GgufTensor> tensors;
};

// `name` stands for the file in errors. The result's views point into `bytes`.
Result<GgufContents> parse_gguf(std::span<const std::byte> bytes, const std::string& name);

}  // namespace tercet::format
