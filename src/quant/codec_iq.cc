#include "quant/codec_iq.h"

#include "base/float16.h"
#include "quant/ggml_codes_iq.h"

namespace tercet::quant {
namespace {

template <class Block>
void decode(const Block& block, const CodeTable& table, float* out) {
  TableBlock codes;
  read_table_block(block, codes);
  const float d = f16_to_f32(codes.d) * table.factor;
  for (int i = 0; i < kSuperBlock; ++i)
    out[i] = d * static_cast<float>(codes.scales[i / 16]) * static_cast<float>(table.values[codes.codes[i]]);
}

}  // namespace

void iq1_s(const BlockIQ1_S& block, float* out) { decode(block, kIQ1Table, out); }
void iq1_m(const BlockIQ1_M& block, float* out) { decode(block, kIQ1Table, out); }
void iq2_xxs(const BlockIQ2_XXS& block, float* out) { decode(block, kIQ2Table, out); }
void iq2_xs(const BlockIQ2_XS& block, float* out) { decode(block, kIQ2Table, out); }
void iq2_s(const BlockIQ2_S& block, float* out) { decode(block, kIQ2Table, out); }
void iq3_xxs(const BlockIQ3_XXS& block, float* out) { decode(block, kIQ3_XXSTable, out); }
void iq3_s(const BlockIQ3_S& block, float* out) { decode(block, kIQ3_STable, out); }
void iq4_xs(const BlockIQ4_XS& block, float* out) { decode(block, kIQ4Table, out); }

void iq4_nl(const BlockIQ4_NL& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(kIQ4Table.values[block.qs[i] & 15]);
    out[i + 16] = d * static_cast<float>(kIQ4Table.values[block.qs[i] >> 4]);
  }
}

}  // namespace tercet::quant
