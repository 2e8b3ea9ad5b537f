#include "quant/encode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "quant/codec.h"

namespace tercet::quant {
namespace {

// A tensor of a small .safetensors file of tests/data/ggml.
struct EncodeGolden {
  explicit EncodeGolden(const std::string& type)
      : bytes(*read_file(std::string(TERCET_TEST_DATA) + "/ggml/" + type + ".safetensors")) {
    uint64_t length;
    std::memcpy(&length, bytes.data(), sizeof length);
    header = nlohmann::json::parse(bytes.substr(8, length));
    data = 8 + length;
  }
  std::string tensor(const char* name) const {
    const auto& offsets = header[name]["data_offsets"];
    return bytes.substr(data + offsets[0].get<size_t>(), offsets[1].get<size_t>() - offsets[0].get<size_t>());
  }

  std::string bytes;
  nlohmann::json header;
  size_t data = 0;
};

class Encode : public testing::TestWithParam<const char*> {};

// gguf-py's encoders, which are ggml's reference, gave these blocks.
TEST_P(Encode, GivesTheBlocksOfTheReference) {
  const EncodeGolden golden(GetParam());
  const DType type = *dtype_from_name(GetParam());
  ASSERT_TRUE(can_quantize(type));
  const std::string source = golden.tensor("source"), blocks = golden.tensor("blocks");
  std::vector<float> values(source.size() / sizeof(float));
  std::memcpy(values.data(), source.data(), source.size());
  std::string made(blocks.size(), '\0');
  quantize_row(type, values.data(), reinterpret_cast<std::byte*>(made.data()),
               static_cast<int64_t>(values.size()));
  size_t different = 0;
  for (size_t i = 0; i < blocks.size(); ++i) different += made[i] != blocks[i];
  EXPECT_EQ(different, 0u);
}

INSTANTIATE_TEST_SUITE_P(Types, Encode,
                         testing::Values("F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Encode, ValuesThatAreNoNumbersDoNotCrash) {
  const float values[32] = {NAN, INFINITY, -INFINITY, 1e38f, -1e38f, 0};
  for (const DType type : {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1}) {
    std::vector<std::byte> blocks(static_cast<size_t>(dtype_info(type).block_bytes));
    quantize_row(type, values, blocks.data(), 32);
  }
}

}  // namespace
}  // namespace tercet::quant
