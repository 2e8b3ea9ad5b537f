// What no ordinary text or tokenizer file holds: it ends, with an error or the defined result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "text/test_data.h"
#include "text/tokenizer_json.h"
#include "text/unicode.h"

namespace tercet::text {
namespace {

using nlohmann::json;
using testing::ElementsAre;

constexpr size_t kHuge = 10'000'000;  // bytes of one word

Result<Tokenizer> load(const json& file) {
  TERCET_ASSIGN(TokenizerSpec spec, tokenizer_spec_from_json(file.dump()));
  return Tokenizer::create(std::move(spec));
}

// The work of a word of `word`, repeated to ten megabytes, is at most `most_steps` for each byte.
void expect_huge_word(const Tokenizer& tokenizer, const std::string& word, uint64_t most_steps) {
  std::string text;
  while (text.size() < kHuge) text += word;
  uint64_t steps = 0;
  EXPECT_FALSE(tokenizer.encode(text, {}, &steps).empty()) << word;
  EXPECT_LT(steps, most_steps * text.size()) << word;
}

TEST(HostileText, WordsOfTenMegabytes) {
  for (const char* word : {"a", "ab", "\u4E2D"}) {
    expect_huge_word(test_tokenizer("q05"), word, 30);
    expect_huge_word(test_tokenizer("llama-spm"), word, 30);
  }
  const json unigram = {
      {"model",
       {{"type", "Unigram"},
        {"unk_id", 0},
        {"vocab", json::array({{"<unk>", 0}, {"a", -1}, {"ab", -1.5}, {"aaaaaaaa", -2}})}}}};
  expect_huge_word(load(unigram).value(), "a", 10);
  expect_huge_word(load(unigram).value(), "ab", 10);
  const json pieces = {
      {"model",
       {{"type", "WordPiece"},
        {"unk_token", "[UNK]"},
        {"max_input_chars_per_word", 1 << 30},
        {"vocab", {{"[UNK]", 0}, {"a", 1}, {"##a", 2}, {"##b", 3}, {"##ab", 4}, {"##aaaaaaaaac", 5}}}}}};
  expect_huge_word(load(pieces).value(), "a", 12);
  expect_huge_word(load(pieces).value(), "ab", 12);
}

TEST(HostileText, BytesThatAreNoText) {
  const std::string bad[] = {std::string(1, '\0'), "\xFF\xFE",         "\xC3",
                             "\xED\xA0\x80",       "\xF4\x90\x80\x80", "a\xE4\xB8"};
  for (const char* name : {"qwen3", "gemma3"}) {
    const Tokenizer& t = test_json_tokenizer(name);
    for (const std::string& text : bad)
      EXPECT_EQ(t.decode(t.encode(text)), replace_invalid_bytes(text)) << name;
  }
}

// Of every character of Unicode, in texts of random ones.
TEST(HostileText, UnicodeThereAndBack) {
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    std::string text;
    for (int i = 0; i < 60; ++i) {
      const char32_t c = random() % (round % 2 == 0 ? 0x110000 : 0x3000);
      if (c < 0xD800 || c >= 0xE000) append_utf8(c, text);
    }
    const Tokenizer& byte_level = test_json_tokenizer("llama3_1");
    ASSERT_EQ(byte_level.decode(byte_level.encode(text)), text);
    const Tokenizer& composed = test_json_tokenizer("qwen3");
    ASSERT_EQ(composed.decode(composed.encode(text)), normalize(text, NormalForm::kNfc));
  }
}

TEST(HostileTokenizer, MergesThatAreMissingRepeatedOrCircular) {
  json file = {
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}},
      {"model",
       {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}, {"aba", 3}}}, {"merges", json::array()}}}};
  EXPECT_THAT(load(file)->encode("aba"), ElementsAre(0, 1, 0)) << "no merges: letters";
  file["model"]["merges"] = {"a b", "a b", "ab a"};
  EXPECT_THAT(load(file)->encode("abaab"), ElementsAre(3, 2));
  file["model"]["merges"] = {"ab a"};
  EXPECT_THAT(load(file)->encode("aba"), ElementsAre(0, 1, 0)) << "no way to its left part";
  file["model"]["merges"] = {"a x"};
  EXPECT_FALSE(load(file).ok());
  file["model"]["merges"] = {"", "a"};
  EXPECT_FALSE(load(file).ok());
}

TEST(HostileTokenizer, TokensThatAreThereTwice) {
  const std::string twice = R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "a": 2}, "merges": []}})";
  auto spec = tokenizer_spec_from_json(twice);
  ASSERT_TRUE(spec.ok()) << "of a key that is there twice the last counts, as in any JSON";
  EXPECT_THAT(Tokenizer::create(*std::move(spec))->encode("ab"), ElementsAre(2, 1));
  const json unigram = {
      {"model",
       {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", json::array({{"<unk>", 0}, {"a", -1}, {"a", -9}})}}}};
  EXPECT_THAT(load(unigram)->encode("aa"), ElementsAre(1, 1)) << "of equal tokens the first";
}

}  // namespace
}  // namespace tercet::text
