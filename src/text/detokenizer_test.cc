#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "text/test_data.h"
#include "text/unicode.h"

namespace tercet::text {
namespace {

// A tokenizer whose tokens 0 to 255 are the bytes.
Tokenizer byte_tokenizer() {
  TokenizerSpec spec;
  for (int byte = 0; byte < 256; ++byte) {
    spec.texts.emplace_back(1, static_cast<char>(byte));
    spec.pieces.emplace_back(1, static_cast<char>(byte));
  }
  spec.texts.emplace_back();
  spec.pieces.emplace_back("<end>");
  spec.is_control.assign(257, 0);
  spec.is_control[256] = 1;
  return *Tokenizer::create(std::move(spec));
}

std::string push_all(Detokenizer& d, std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += d.push(static_cast<unsigned char>(c));
  return out;
}

// Row A7 of the reports: characters split over tokens arrive whole; an incomplete one at the end is U+FFFD,
// once.
TEST(Detokenizer, EmitsWholeCharacters) {
  Detokenizer d(byte_tokenizer());
  EXPECT_EQ(d.push('a'), "a");
  EXPECT_EQ(push_all(d, "\xF0\x9F\x98"), "");
  EXPECT_EQ(d.push(0x80), "😀");
  EXPECT_EQ(d.flush(), "");
}

TEST(Detokenizer, IncompleteEndIsOneReplacement) {
  Detokenizer d(byte_tokenizer());
  EXPECT_EQ(push_all(d, "x\xF0\x9F\x98"), "x");
  EXPECT_EQ(d.pending().size(), 3u);
  EXPECT_EQ(d.flush(), "\uFFFD");
  EXPECT_EQ(d.flush(), "");
}

TEST(Detokenizer, InvalidBytesBecomeReplacements) {
  Detokenizer d(byte_tokenizer());
  EXPECT_EQ(push_all(d,
                     "a\xFF"
                     "b"),
            "a\uFFFD"
            "b");
  EXPECT_EQ(push_all(d, "\xE2\x82z"), "\uFFFDz") << "a broken-off character is one, as soon as it is certain";
  EXPECT_EQ(push_all(d, "\x80"), "\uFFFD");
}

TEST(Detokenizer, StreamEqualsTheWhole) {
  std::mt19937 random(11);
  const Tokenizer tokenizer = byte_tokenizer();
  for (int round = 0; round < 20000; ++round) {
    std::string bytes;
    const char pool[] = {'a',    '\x80', '\xBF', '\xC2', '\xE0', '\xE2', '\xED',
                         '\xA0', '\xF0', '\x9F', '\xF4', '\x90', '\xFF'};
    for (int i = 0; i < 8; ++i) bytes += pool[random() % std::size(pool)];
    Detokenizer d(tokenizer);
    std::string out;
    for (const char c : bytes) {
      const std::string part = d.push(static_cast<unsigned char>(c));
      ASSERT_TRUE(is_valid_utf8(part));
      out += part;
    }
    out += d.flush();
    ASSERT_EQ(out, replace_invalid_sequences(bytes)) << testing::PrintToString(bytes);
  }
}

TEST(Detokenizer, IsAValue) {
  Detokenizer d(byte_tokenizer());
  push_all(d, "\xF0\x9F");
  const Detokenizer before = d;
  EXPECT_EQ(push_all(d, "\x98\x80"), "😀");
  d = before;
  EXPECT_EQ(push_all(d, "\x98\x81"), "😁");
}

TEST(Detokenizer, HidesControlTokensOnDemand) {
  Detokenizer shown(byte_tokenizer()), hidden(byte_tokenizer(), {.skip_special = true});
  EXPECT_EQ(shown.push(256), "<end>");
  EXPECT_EQ(hidden.push(256), "");
  EXPECT_EQ(hidden.push(9999), "") << "an id outside the vocabulary has no text";
}

TEST(Detokenizer, RealVocabulariesStreamTheirText) {
  for (const char* name : {"q05", "gemma3-270m"}) {
    const Tokenizer& tokenizer = test_tokenizer(name);
    for (const std::string text : {"Grüße aus 東京 👩‍👩‍👧 — \u0939\u093f!", "a\nb\tc  d"}) {
      Detokenizer d(tokenizer);
      std::string out;
      for (const TokenId id : tokenizer.encode(text)) out += d.push(id);
      EXPECT_EQ(out + d.flush(), text);
    }
  }
}

}  // namespace
}  // namespace tercet::text
