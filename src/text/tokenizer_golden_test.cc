// Every line of tests/data/tokenize, which llama.cpp and Hugging Face's tokenizers wrote.
#include <gtest/gtest.h>

#include "text/test_data.h"

namespace tercet::text {
namespace {

class GgufGolden : public testing::TestWithParam<const char*> {};

TEST_P(GgufGolden, EncodesAsLlamaCpp) {
  const Tokenizer& tokenizer = test_tokenizer(GetParam());
  const auto lines = golden_lines(std::string("gguf-") + GetParam());
  ASSERT_GT(lines.size(), 400u);
  for (const GoldenLine& line : lines) {
    SCOPED_TRACE(testing::Message() << line.name << " add_special " << line.add_special << " parse_special "
                                    << line.parse_special);
    EXPECT_EQ(tokenizer.encode(line.text, {line.add_special, line.parse_special}), line.ids);
  }
}

TEST_P(GgufGolden, DecodesAsLlamaCpp) {
  const Tokenizer& tokenizer = test_tokenizer(GetParam());
  for (const GoldenLine& line : golden_lines(std::string("gguf-") + GetParam())) {
    SCOPED_TRACE(line.name);
    EXPECT_EQ(tokenizer.decode(line.ids), line.decoded);
    std::string pieces;
    for (const TokenId id : line.ids) pieces += tokenizer.piece(id);
    EXPECT_EQ(pieces, line.pieces);
  }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, GgufGolden,
                         testing::Values("deepseek-coder", "deepseek-llm", "falcon", "gpt-2", "llama-spm",
                                         "phi-3", "starcoder", "smollm2-135m", "gemma3-270m", "q05"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) c = isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

class JsonGolden : public testing::TestWithParam<const char*> {};

TEST_P(JsonGolden, EncodesAsHuggingFace) {
  const Tokenizer& tokenizer = test_json_tokenizer(GetParam());
  const auto lines = golden_lines(GetParam());
  ASSERT_GT(lines.size(), 300u);
  for (const GoldenLine& line : lines) {
    SCOPED_TRACE(testing::Message() << line.name << " add_special " << line.add_special << " parse_special "
                                    << line.parse_special);
    EXPECT_EQ(tokenizer.encode(line.text, {line.add_special, line.parse_special}), line.ids);
  }
}

TEST_P(JsonGolden, DecodesAsHuggingFace) {
  const Tokenizer& tokenizer = test_json_tokenizer(GetParam());
  for (const GoldenLine& line : golden_lines(GetParam())) {
    SCOPED_TRACE(line.name);
    EXPECT_EQ(tokenizer.decode(line.ids), line.decoded);
    EXPECT_EQ(tokenizer.decode(line.ids, {.skip_special = true}), line.decoded_skip_special);
  }
}

INSTANTIATE_TEST_SUITE_P(TokenizerJson, JsonGolden,
                         testing::Values("qwen3", "llama3_1", "deepseek_v3", "gemma3"));

}  // namespace
}  // namespace tercet::text
