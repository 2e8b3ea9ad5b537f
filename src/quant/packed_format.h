// The formats that have a packed layout, and how one of their blocks reads in its terms.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/ggml_blocks.h"
#include "quant/packed.h"

namespace tercet::quant {

// One block of one row of a file: codes, sub-scales for sub-blocks of 16 or 32, and d and m for each float
// block (d the bits of an F16, or an e8m0 byte).
struct FormatBlock {
  uint8_t codes[kSpan];
  uint8_t sub[kSpan / 16];
  uint8_t minimum[kSpan / 32];
  uint16_t d[4];
  Half m[1];
};

struct Format {
  DType type;
  PackedLayout layout;
  void (*read)(const std::byte* block, FormatBlock& out);
};

// nullptr when the type has no packed layout.
const Format* find_format(DType type);

}  // namespace tercet::quant
