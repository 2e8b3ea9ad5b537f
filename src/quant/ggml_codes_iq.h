// The i-quants in the terms of a code table: every value of IQ1 to IQ4_XS is d * factor * scale *
// table[code], with an integer scale for each 16 elements and at most 16 entries in the table. All products
// are exact in float32.
#pragma once

#include <cstdint>

#include "quant/ggml_blocks.h"

namespace tercet::quant {

struct CodeTable {
  int8_t values[16];
  float factor;
};

// 25 sixteenths and so on of ggml's grids, with both signs; IQ1 counts in eighths, IQ3_XXS has half the
// grid's values.
inline constexpr CodeTable kIQ1Table = {{-9, -1, 7, 0, -7, 1, 9, 0}, 0.125f};
inline constexpr CodeTable kIQ2Table = {{8, 25, 43, 0, -8, -25, -43, 0}, 0.125f};
inline constexpr CodeTable kIQ3_XXSTable = {
    {2, 6, 10, 14, 18, 22, 26, 31, -2, -6, -10, -14, -18, -22, -26, -31}, 0.5f};
inline constexpr CodeTable kIQ3_STable = {{1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15},
                                          1.0f};
inline constexpr CodeTable kIQ4Table = {
    {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}, 1.0f};

// One block: a code for each element, a scale for each 16 of them, and d.
struct TableBlock {
  uint8_t codes[kSuperBlock];
  int8_t scales[kSuperBlock / 16];
  Half d;
};
void read_table_block(const BlockIQ1_S& in, TableBlock& out);
void read_table_block(const BlockIQ1_M& in, TableBlock& out);
void read_table_block(const BlockIQ2_XXS& in, TableBlock& out);
void read_table_block(const BlockIQ2_XS& in, TableBlock& out);
void read_table_block(const BlockIQ2_S& in, TableBlock& out);
void read_table_block(const BlockIQ3_XXS& in, TableBlock& out);
void read_table_block(const BlockIQ3_S& in, TableBlock& out);
void read_table_block(const BlockIQ4_XS& in, TableBlock& out);

}  // namespace tercet::quant
