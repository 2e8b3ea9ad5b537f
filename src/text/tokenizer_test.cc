#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "text/byte_level.h"
#include "text/test_data.h"
#include "text/unicode.h"

namespace tercet::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A small BPE over bytes: "ab", "abc" and " ab" merge.
TokenizerSpec small_spec() {
  TokenizerSpec spec;
  spec.texts = {"a", "b", "c", " ", "ab", "abc", " ab", ""};
  spec.pieces = {"a", "b", "c", " ", "ab", "abc", " ab", "<x>"};
  spec.is_control = {0, 0, 0, 0, 0, 0, 0, 1};
  spec.merges = {{0, 1, 4}, {4, 2, 5}, {3, 4, 6}};
  spec.added_tokens = {{7, "<x>", true}};
  return spec;
}

Tokenizer make(TokenizerSpec spec) {
  auto tokenizer = Tokenizer::create(std::move(spec));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().to_string();
  return *std::move(tokenizer);
}

std::string random_unicode(std::mt19937& random, size_t length) {
  std::string text;
  while (length > 0) {
    const uint32_t kind = random() % 8;
    const char32_t c = kind < 4 ? random() % 128 : kind < 6 ? random() % 0x3000 : random() % 0x110000;
    if (c >= 0xD800 && c < 0xE000) continue;
    append_utf8(c, text);
    --length;
  }
  return text;
}

TEST(Tokenizer, MergesByRankThenFromTheLeft) {
  const Tokenizer t = make(small_spec());
  EXPECT_THAT(t.encode("abc"), ElementsAre(5));
  EXPECT_THAT(t.encode("aabcab"), ElementsAre(0, 5, 4));
  EXPECT_THAT(t.encode(" ab"), ElementsAre(6));
  EXPECT_THAT(t.encode(" abc"), ElementsAre(3, 5)) << "abc has the lower rank";
  EXPECT_THAT(t.encode("xay"), ElementsAre(0)) << "bytes that are no token are dropped";
  EXPECT_THAT(t.encode(""), ElementsAre());
}

TEST(Tokenizer, SpecialTokensInTextAreTextUnlessParsed) {
  const Tokenizer t = make(small_spec());
  EXPECT_THAT(t.encode("a<x>b"), ElementsAre(0, 1));
  EXPECT_THAT(t.encode("a<x>b", {.parse_special = true}), ElementsAre(0, 7, 1));
  EXPECT_EQ(t.decode(std::vector<TokenId>{0, 7, 1}), "a<x>b");
  EXPECT_EQ(t.decode(std::vector<TokenId>{0, 7, 1}, {.skip_special = true}), "ab");
  EXPECT_EQ(t.token_id("<x>"), 7);
  EXPECT_EQ(t.token_id("abc"), 5);
  EXPECT_EQ(t.token_id("zz"), std::nullopt);
  EXPECT_TRUE(t.is_control(7));
  EXPECT_FALSE(t.is_control(-1) || t.is_control(8) || t.is_end_token(7));
}

std::vector<TextSpan> spans_of(std::initializer_list<std::pair<std::string_view, bool>> parts,
                               std::string& text) {
  std::vector<TextSpan> spans;
  for (const auto& [part, is_template] : parts) {
    spans.push_back({text.size(), text.size() + part.size(), is_template});
    text += part;
  }
  return spans;
}

std::vector<TokenId> encode_parts(const Tokenizer& tokenizer,
                                  std::initializer_list<std::pair<std::string_view, bool>> parts) {
  std::string text;
  const auto spans = spans_of(parts, text);
  return tokenizer.encode(text, spans);
}

TEST(Tokenizer, SpecialTokensCountInTemplateTextOnly) {
  for (const MatchOrder order : {MatchOrder::kLongestFirst, MatchOrder::kLeftmostLongest}) {
    TokenizerSpec spec = small_spec();
    spec.match_order = order;
    const Tokenizer t = make(spec);
    EXPECT_THAT(encode_parts(t, {{"<x>", true}, {"a<x>b", false}, {"<x>", true}}), ElementsAre(7, 0, 1, 7));
    EXPECT_THAT(encode_parts(t, {{"<x", true}, {">a", false}}), ElementsAre(0)) << "half of it is the user's";
    EXPECT_THAT(encode_parts(t, {{"<", false}, {"x>", true}}), ElementsAre());
    EXPECT_THAT(encode_parts(t, {{"a", true}, {"b<x>a", false}, {"b<x>c", true}}), ElementsAre(4, 4, 7, 2))
        << "words go on across the borders, whatever the user wrote";
    EXPECT_THAT(encode_parts(t, {{"a\xFF", true}, {"<x>\xFF", false}, {"<x>", true}}), ElementsAre(0, 7))
        << "bytes that are replaced move the borders";
  }
}

TEST(Tokenizer, SpecialTokensOfTheNormalizedTextCountInTemplateTextOnly) {
  TokenizerSpec spec = small_spec();
  spec.added_tokens[0].normalized = true;
  const Tokenizer plain = make(spec);
  EXPECT_THAT(encode_parts(plain, {{"a<x>", true}, {"<x>a", false}, {"b", true}}), ElementsAre(0, 7, 4));
  NormalizerStep lower;
  lower.kind = NormalizerKind::kLowercase;
  spec.normalizer = {lower};
  const Tokenizer t = make(spec);
  EXPECT_THAT(encode_parts(t, {{"A<X>", true}, {"<x>", false}, {"B", true}}), ElementsAre(0, 7, 1));
  EXPECT_THAT(encode_parts(t, {{"A", true}, {"B", false}}), ElementsAre(4));
}

TEST(Tokenizer, AddsPrefixAndSuffixOnDemand) {
  TokenizerSpec spec = small_spec();
  spec.prefix = {7};
  spec.suffix = {2};
  spec.bos = 7;
  spec.eos = 2;
  spec.end_tokens = {2};
  const Tokenizer t = make(spec);
  EXPECT_THAT(t.encode("a", {.add_special = true}), ElementsAre(7, 0, 2));
  EXPECT_THAT(t.encode("<x>a", {.add_special = true, .parse_special = true}), ElementsAre(7, 7, 0, 2));
  EXPECT_THAT(t.encode("a"), ElementsAre(0));
  EXPECT_TRUE(t.adds_bos());
  EXPECT_EQ(t.bos(), 7);
  EXPECT_TRUE(t.is_end_token(2));
}

TEST(Tokenizer, IgnoreMergesTakesWholeWords) {
  TokenizerSpec spec = small_spec();
  spec.merges = {{0, 1, 4}};
  EXPECT_THAT(make(spec).encode("abc"), ElementsAre(4, 2));
  spec.bpe.ignore_merges = true;
  EXPECT_THAT(make(spec).encode("abc"), ElementsAre(5));
}

TEST(Tokenizer, RefusesIdsOutsideTheVocabulary) {
  const auto message = [](auto change) {
    TokenizerSpec spec = small_spec();
    change(spec);
    const auto result = Tokenizer::create(std::move(spec));
    return result.ok() ? std::string("ok") : result.error().message;
  };
  EXPECT_EQ(message([](TokenizerSpec&) {}), "ok");
  EXPECT_THAT(message([](TokenizerSpec& s) { s.bos = 8; }), HasSubstr("bos is token 8"));
  EXPECT_THAT(message([](TokenizerSpec& s) {
                s.merges.push_back({0, 99, 1});
              }),
              HasSubstr("right part of a merge"));
  EXPECT_THAT(message([](TokenizerSpec& s) {
                s.merges.push_back({0, -1, 1});
              }),
              HasSubstr("right part of a merge"));
  EXPECT_THAT(message([](TokenizerSpec& s) { s.prefix = {-1}; }), HasSubstr("prefix"));
  EXPECT_THAT(message([](TokenizerSpec& s) { s.added_tokens[0].id = 50; }), HasSubstr("added token"));
  EXPECT_THAT(message([](TokenizerSpec& s) { s.pieces.pop_back(); }), HasSubstr("7 pieces"));
  EXPECT_THAT(message([](TokenizerSpec& s) { s.model = ModelKind::kSpm; }), HasSubstr("0 scores"));
  EXPECT_THAT(message([](TokenizerSpec& s) { s.splits = {{"("}}; }), HasSubstr("does not compile"));
  EXPECT_THAT(message([](TokenizerSpec& s) { s = TokenizerSpec(); }), HasSubstr("empty"));
}

TEST(Tokenizer, WordPieceTakesTheLongestOrUnknown) {
  TokenizerSpec spec;
  spec.model = ModelKind::kWordPiece;
  spec.texts = spec.pieces = {"[UNK]", "un", "##aff", "##able", "##a", "run"};
  spec.is_control.assign(6, 0);
  spec.bpe.unknown = 0;
  spec.splits = {{" ", PatternKind::kLiteral, SplitBehavior::kRemoved}};
  const Tokenizer t = make(spec);
  EXPECT_THAT(t.encode("unaffable run"), ElementsAre(1, 2, 3, 5));
  EXPECT_THAT(t.encode("unx run"), ElementsAre(0, 5));
}

TEST(Tokenizer, UnigramTakesTheMostLikelyCut) {
  TokenizerSpec spec;
  spec.model = ModelKind::kUnigram;
  spec.texts = spec.pieces = {"<unk>", "a", "b", "ab", "abb", "é"};
  spec.is_control.assign(6, 0);
  spec.scores = {0, -2, -2, -3, -3.5, -1};
  spec.bpe.unknown = 0;
  const Tokenizer t = make(spec);
  EXPECT_THAT(t.encode("ab"), ElementsAre(3));
  EXPECT_THAT(t.encode("aabb"), ElementsAre(1, 4));
  EXPECT_THAT(t.encode("bab"), ElementsAre(2, 3));
  EXPECT_THAT(t.encode("a中文é"), ElementsAre(1, 0, 5)) << "a run of unknown characters is one unknown token";
}

TEST(Tokenizer, EncodeThenDecodeIsTheText) {
  std::mt19937 random(1);
  for (const char* name : {"q05", "gemma3-270m", "llama-spm", "deepseek-llm"}) {
    const Tokenizer& t = test_tokenizer(name);
    for (int round = 0; round < 3000; ++round) {
      const std::string text = random_unicode(random, 1 + random() % 40);
      // A literal U+2581 is a space in SentencePiece's vocabularies.
      if (text.find(kMetaspace) != text.npos) continue;
      ASSERT_EQ(t.decode(t.encode(text)), text) << name << " " << testing::PrintToString(text);
    }
  }
}

TEST(Tokenizer, AnyBytesHaveAResult) {
  std::mt19937 random(2);
  for (const char* name : {"q05", "smollm2-135m", "gemma3-270m", "llama-spm"}) {
    const Tokenizer& t = test_tokenizer(name);
    for (int round = 0; round < 1000; ++round) {
      std::string bytes;
      for (size_t i = random() % 60; i > 0; --i) bytes += static_cast<char>(random());
      std::erase(bytes, ' ');  // a byte that announces a longer character takes the U+2581 of a space into it
      const auto ids = t.encode(bytes, {.parse_special = round % 2 == 0});
      for (const TokenId id : ids) ASSERT_TRUE(id >= 0 && id < t.vocab_size());
      if (name == std::string("llama-spm")) {
        ASSERT_EQ(t.decode(ids), bytes) << "byte tokens keep what is no UTF-8";
      }
    }
  }
}

// Above U+10FFFF, over-long, surrogates: what makes other engines abort.
TEST(Tokenizer, IllFormedTextBecomesReplacementCharacters) {
  const Tokenizer& t = test_tokenizer("q05");
  EXPECT_EQ(t.decode(t.encode("a\xF4\x90\x80\x80z")), "a\uFFFD\uFFFD\uFFFD\uFFFDz");
  EXPECT_EQ(t.decode(t.encode("\xC0\x80")), "\uFFFD\uFFFD");
  EXPECT_EQ(t.decode(t.encode("\xED\xA0\x80")), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(t.decode(t.encode(std::string_view("a\0b", 3))), std::string_view("a\0b", 3));
}

TEST(Tokenizer, ThreadsGetTheSameResult) {
  const Tokenizer& t = test_tokenizer("smollm2-135m");
  const std::string text = read_xz("tokenize/gguf-gpt-2.jsonl.xz").substr(0, 60000);
  std::vector<std::vector<TokenId>> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&] { result = t.encode(text); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

TEST(ByteLevel, AlphabetHasEveryByteOnce) {
  std::vector<int> seen(256);
  for (char32_t c = 0; c < 0x200; ++c) {
    std::string character;
    append_utf8(c, character);
    const auto byte = bytes_of_byte_level(character);
    if (byte) ++seen[static_cast<unsigned char>((*byte)[0])];
  }
  EXPECT_THAT(seen, testing::Each(1));
  EXPECT_EQ(bytes_of_byte_level("ĠtheĊ"), " the\n");
  EXPECT_EQ(bytes_of_byte_level("<｜end｜>"), std::nullopt);
  EXPECT_EQ(parse_byte_token("<0x0a>"), 10);
  for (const char* bad : {"<0x-1>", "<0x1>", "<0x123>", "0x0A", "<0xGG>", ""})
    EXPECT_FALSE(parse_byte_token(bad)) << bad;
}

}  // namespace
}  // namespace tercet::text
