#include "quant/packed.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "quant/codec.h"

namespace tercet::quant {
namespace {

// Rows of random blocks: every bit pattern a file may hold, except scales that are not finite.
std::vector<std::byte> random_row(DType type, int64_t inputs, std::mt19937& random) {
  std::vector<std::byte> row(static_cast<size_t>(dtype_row_bytes(type, inputs)));
  std::vector<float> values(static_cast<size_t>(inputs));
  const auto block_bytes = static_cast<size_t>(dtype_info(type).block_bytes);
  for (size_t begin = 0; begin < row.size(); begin += block_bytes) {
    bool finite = false;
    while (!finite) {
      for (size_t i = 0; i < block_bytes; ++i) row[begin + i] = static_cast<std::byte>(random());
      const int elements = dtype_info(type).block_elements;
      dequantize_row(type, row.data() + begin, values.data(), elements);
      finite = true;
      for (int i = 0; i < elements; ++i) finite = finite && std::isfinite(values[static_cast<size_t>(i)]);
    }
  }
  return row;
}

class Packed : public testing::TestWithParam<DType> {};

TEST_P(Packed, KeepsTheFormatsValuesBitForBit) {
  const DType type = GetParam();
  const PackedLayout& layout = *packed_layout(type);
  std::mt19937 random(7);
  for (int64_t blocks : {1, 3, 9, 28}) {
    const int64_t inputs = blocks * std::max(layout.block, dtype_info(type).block_elements);
    std::vector<std::vector<std::byte>> rows;
    const std::byte* pointers[kPanelRows] = {};
    for (int r = 0; r < 13; ++r) {
      rows.push_back(random_row(type, inputs, random));
      pointers[r] = rows.back().data();
    }
    std::vector<std::byte> panel(static_cast<size_t>(panel_bytes(layout, inputs)), std::byte{0xAA});
    pack_panel(type, pointers, inputs, panel.data());
    std::vector<float> expected(static_cast<size_t>(inputs)), got(expected.size());
    for (int r = 0; r < kPanelRows; ++r) {
      unpack_row(layout, panel.data(), inputs, r, got.data());
      if (r < 13) {
        dequantize_row(type, pointers[r], expected.data(), inputs);
      } else {
        unpack_row(layout, panel.data(), inputs, r, expected.data());
        for (float value : expected) ASSERT_EQ(value, 0.0f);
      }
      for (size_t i = 0; i < expected.size(); ++i)
        ASSERT_EQ(std::bit_cast<uint32_t>(expected[i] + 0.0f), std::bit_cast<uint32_t>(got[i] + 0.0f))
            << dtype_name(type) << " row " << r << " column " << i;
    }
  }
}

// The i-quants' grids are spelled out: 3 bits a code for at most 2.6, 4 for at most 3.5; and ternary codes
// take two bits.
TEST_P(Packed, CostsLittleMoreThanTheFile) {
  const DTypeInfo& info = dtype_info(GetParam());
  const int64_t packed = panel_bytes(*packed_layout(GetParam()), 2048);
  const double bits = static_cast<double>(packed) * 8 / (16 * 2048);
  const double in_file = 8.0 * info.block_bytes / info.block_elements;
  EXPECT_LE(bits, in_file < 2.4 ? 3.7 : in_file < 3.5 ? in_file * 1.55 : in_file * 1.2);
}

std::vector<DType> packed_types() {
  std::vector<DType> types;
  for (const DTypeInfo& info : dtype_table())
    if (packed_layout(info.type) != nullptr) types.push_back(info.type);
  return types;
}

INSTANTIATE_TEST_SUITE_P(Formats, Packed, testing::ValuesIn(packed_types()),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

TEST_P(Packed, NoValueOfATableIsLargerThanItsZero) {
  const PackedLayout& layout = *packed_layout(GetParam());
  if (!layout.has_table || layout.zero == 0) return;
  for (int code = 0; code < 16; ++code) EXPECT_LE(std::abs(layout.table[code]), layout.zero);
}

TEST(Packed, EveryTypeWithRealValuesIsPackedOrFloat) {
  for (const DTypeInfo& info : dtype_table())
    EXPECT_EQ(can_dequantize(info.type) && info.block_elements > 1, packed_layout(info.type) != nullptr)
        << info.name;
}

TEST(Packed, FloatTypesHaveNoPackedLayout) {
  EXPECT_EQ(packed_layout(DType::kF32), nullptr);
  EXPECT_EQ(packed_layout(DType::kBF16), nullptr);
}

}  // namespace
}  // namespace tercet::quant
