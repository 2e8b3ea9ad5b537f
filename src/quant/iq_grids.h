// The codebooks of ggml's IQ1, IQ2 and IQ3 types (ggml-common.h: iq2xxs_grid and so on), packed as gguf-py's
// quants.py packs them: element i of an entry in the i-th group of bits, lowest first.
#pragma once

#include <cstdint>

namespace tercet::quant {

inline constexpr int kIQ2Values[3] = {8, 25, 43};
inline constexpr int kIQ3_XXSValues[8] = {4, 12, 20, 28, 36, 44, 52, 62};

// Eight 2-bit indices into kIQ2Values an entry.
extern const uint16_t kIQ2_XXSGrid[256];
// As kIQ2_XXSGrid.
extern const uint16_t kIQ2_XSGrid[512];
// As kIQ2_XXSGrid.
extern const uint16_t kIQ2_SGrid[1024];
// Eight 2-bit codes an entry, the values plus one; IQ1_S and IQ1_M share it.
extern const uint16_t kIQ1Grid[2048];
// Four 4-bit indices into kIQ3_XXSValues an entry.
extern const uint16_t kIQ3_XXSGrid[256];
// Four 4-bit codes c an entry, standing for 2 c + 1.
extern const uint16_t kIQ3_SGrid[512];

}  // namespace tercet::quant
