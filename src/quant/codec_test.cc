#include "quant/codec.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/float16.h"
#include "quant/ggml_blocks.h"

namespace tercet::quant {
namespace {

// Goldens: one safetensors file per type with blocks and their exact values (tests/data/ggml/README.md).
class Golden {
 public:
  explicit Golden(const std::string& type)
      : bytes_(*read_file(std::string(TERCET_TEST_DATA "/ggml/") + type + ".safetensors")) {
    uint64_t size;
    std::memcpy(&size, bytes_.data(), sizeof size);
    header_ = nlohmann::json::parse(bytes_.substr(sizeof size, size));
    data_ = bytes_.data() + sizeof size + size;
  }

  std::string tensor(const std::string& name) const {
    const auto& offsets = header_[name]["data_offsets"];
    return std::string(data_ + offsets[0].get<size_t>(), data_ + offsets[1].get<size_t>());
  }

 private:
  std::string bytes_;
  nlohmann::json header_;
  const char* data_ = nullptr;
};

std::vector<float> floats(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

class CodecGoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(CodecGoldenTest, DequantizesToTheGoldenBits) {
  const auto type = dtype_from_name(GetParam());
  ASSERT_TRUE(type && can_dequantize(*type));
  const Golden golden(GetParam());
  for (const std::string prefix : {"", "rand_"}) {
    std::string blocks = golden.tensor(prefix + "blocks");
    blocks.insert(blocks.begin(), '?');  // so that they lie at an odd address
    const std::vector<float> expected = floats(golden.tensor(prefix + "values"));
    std::vector<float> values(expected.size());
    dequantize_row(*type, reinterpret_cast<const std::byte*>(blocks.data() + 1), values.data(),
                   static_cast<int64_t>(values.size()));
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), std::bit_cast<uint32_t>(expected[i]))
          << prefix << "values[" << i << "]: " << values[i] << ", not " << expected[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CodecGoldenTest,
                         testing::Values("F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K",
                                         "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ1_S", "IQ1_M", "IQ2_XXS",
                                         "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_NL", "IQ4_XS", "TQ1_0",
                                         "TQ2_0", "MXFP4", "NVFP4", "Q1_0", "Q2_0"),
                         [](const auto& info) { return info.param; });

TEST(Codec, F32IsCopied) {
  const std::vector<float> source = {1, -0.0f, NAN, std::bit_cast<float>(1u)};
  std::vector<float> values(source.size());
  dequantize_row(DType::kF32, reinterpret_cast<const std::byte*>(source.data()), values.data(), 4);
  EXPECT_EQ(0, std::memcmp(source.data(), values.data(), 16));
}

TEST(Codec, IntegerTypesHaveNoRealValues) {
  for (const DType type :
       {DType::kI8, DType::kI16, DType::kI32, DType::kI64, DType::kF64, DType::kQ8_1, DType::kQ8_K})
    EXPECT_FALSE(can_dequantize(type)) << dtype_name(type);
}

TEST(Codec, EveryTypeWithRealValuesHasAGolden) {
  for (const DTypeInfo& info : dtype_table()) {
    if (info.type == DType::kF32 || !can_dequantize(info.type)) continue;
    EXPECT_TRUE(std::filesystem::exists(TERCET_TEST_DATA "/ggml/" + std::string(info.name) + ".safetensors"))
        << info.name;
  }
}

TEST(Codec, ScalesOfFp4BlocksFollowTheirDefinitions) {
  for (int e = 0; e < 255; ++e)
    EXPECT_EQ(half_e8m0_to_f32(static_cast<uint8_t>(e)), std::ldexp(1.0f, e - 128)) << e;
  for (int x = 0; x < 0x7f; ++x) {
    const float value = x < 8 ? std::ldexp(x, -9) : std::ldexp(8 + x % 8, x / 8 - 10);
    EXPECT_EQ(half_ue4m3_to_f32(static_cast<uint8_t>(x)), value / 2) << x;
  }
  EXPECT_EQ(half_ue4m3_to_f32(0x7f), 0);
}

}  // namespace
}  // namespace tercet::quant
