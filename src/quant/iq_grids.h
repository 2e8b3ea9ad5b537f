// The codebooks of ggml's IQ1, IQ2 and IQ3 types (ggml-common.h: iq2xxs_grid and so on), packed as gguf-py's
// quants.py packs them: element i of an entry in the i-th group of bits, lowest first.
#pragma once

#include <cstdint>

namespace tercet::quant {

// Eight 2-bit indices into 8, 25, 43 an entry.
extern const uint16_t kIQ2_XXSGrid[256];
// As kIQ2_XXSGrid.
extern const uint16_t kIQ2_XSGrid[512];
// As kIQ2_XXSGrid.
extern const uint16_t kIQ2_SGrid[1024];
// Eight 2-bit codes an entry, the values plus one; IQ1_S and IQ1_M share it.
extern const uint16_t kIQ1Grid[2048];
// Four 4-bit indices into the magnitudes of kIQ3_XXSTable (quant/ggml_codes_iq.h) an entry.
extern const uint16_t kIQ3_XXSGrid[256];
// Four 4-bit codes c an entry, standing for 2 c + 1.
extern const uint16_t kIQ3_SGrid[512];

}  // namespace tercet::quant
