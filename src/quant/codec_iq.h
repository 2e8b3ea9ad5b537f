// The codecs of ggml's IQ types, one block at a time: what dequantize_row (quant/codec.h) calls for them.
#pragma once

#include "quant/ggml_blocks.h"

namespace tercet::quant {

void iq1_s(const BlockIQ1_S& block, float* out);
void iq1_m(const BlockIQ1_M& block, float* out);
void iq2_xxs(const BlockIQ2_XXS& block, float* out);
void iq2_xs(const BlockIQ2_XS& block, float* out);
void iq2_s(const BlockIQ2_S& block, float* out);
void iq3_xxs(const BlockIQ3_XXS& block, float* out);
void iq3_s(const BlockIQ3_S& block, float* out);
void iq4_nl(const BlockIQ4_NL& block, float* out);
void iq4_xs(const BlockIQ4_XS& block, float* out);

}  // namespace tercet::quant
