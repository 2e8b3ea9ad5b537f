#include "text/unicode.h"

#include <gtest/gtest.h>

#include <random>

namespace tercet::text {
namespace {

TEST(Unicode, DecodesEveryScalarValueAndNothingElse) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string bytes;
    append_utf8(c, bytes);
    const DecodedChar decoded = decode_utf8(bytes, 0);
    ASSERT_EQ(decoded.code_point, c);
    ASSERT_EQ(decoded.length, bytes.size());
    ASSERT_EQ(utf8_length_by_lead(static_cast<unsigned char>(bytes[0])), bytes.size());
  }
  for (const char* bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xE2\x82", "\xF0\x9F\x98"}) {
    EXPECT_EQ(decode_utf8(bad, 0).length, 0u) << testing::PrintToString(std::string(bad));
    EXPECT_FALSE(is_valid_utf8(bad));
  }
}

// The example of the Unicode standard, section 3.9, table 3-8 and its neighbours.
TEST(Unicode, ReplacesMaximalSubparts) {
  EXPECT_EQ(replace_invalid_sequences("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"),
            "a\uFFFD\uFFFD\uFFFD"
            "b\uFFFD"
            "c\uFFFD\uFFFD"
            "d");
  EXPECT_EQ(replace_invalid_bytes("a\xE2\x82z"), "a\uFFFD\uFFFDz");
}

TEST(Unicode, FindsTheIncompleteEnd) {
  EXPECT_EQ(incomplete_utf8_suffix(""), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("abc"), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("a\xE2"), 1u);
  EXPECT_EQ(incomplete_utf8_suffix("a\xE2\x82"), 2u);
  EXPECT_EQ(incomplete_utf8_suffix("a\xE2\x82\xAC"), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("\xF0\x9F\x98"), 3u);
  EXPECT_EQ(incomplete_utf8_suffix("\xF0\x80"), 0u) << "no character begins with these bytes";
  EXPECT_EQ(incomplete_utf8_suffix("\xFF"), 0u);
}

TEST(Unicode, Classes) {
  EXPECT_EQ(char_class('a'), kLower | kWordChar);
  EXPECT_EQ(char_class(U'Ω'), kUpper | kWordChar);
  EXPECT_EQ(char_class(U'中'), kOtherLetter | kWordChar);
  EXPECT_EQ(char_class(U'٣'), kNumber | kWordChar);
  EXPECT_EQ(char_class(U'²'), kNumber);
  EXPECT_EQ(char_class(U'Ⓐ'), kSymbol | kWordChar);
  EXPECT_EQ(char_class(0x200D), kFormat | kWordChar);
  EXPECT_EQ(char_class('\n'), kSpace | kControl | kNewline);
  EXPECT_TRUE(char_class(0xA0) & kSpace);
  EXPECT_TRUE(char_class(0x3000) & kSpace);
  EXPECT_FALSE(char_class(0x180E) & kSpace)
      << "MONGOLIAN VOWEL SEPARATOR is no white space since Unicode 6.3";
  EXPECT_EQ(char_class('$'), kSymbol);
  EXPECT_EQ(char_class('%'), kPunctuation);
}

// NormalizationTest.txt of Unicode has these among its lines.
TEST(Unicode, NormalForms) {
  EXPECT_EQ(normalize("e\u0301", NormalForm::kNfc), "é");
  EXPECT_EQ(normalize("é", NormalForm::kNfd), "e\u0301");
  EXPECT_EQ(normalize("\u212B", NormalForm::kNfc), "\u00C5");
  EXPECT_EQ(normalize("\u1100\u1161\u11A8", NormalForm::kNfc), "각");
  EXPECT_EQ(normalize("a\u0328\u0301 ", NormalForm::kNfc), "\u0105\u0301 ");
  EXPECT_EQ(normalize("\u1E0B\u0323", NormalForm::kNfc), "\u1E0D\u0307");
  EXPECT_EQ(normalize("ﬁ①", NormalForm::kNfkc), "fi1");
  EXPECT_EQ(normalize("plain", NormalForm::kNfc), "plain");
}

TEST(Unicode, NfcBySegmentsEqualsNfcOfTheDecomposition) {
  std::mt19937 random(7);
  const char32_t pool[] = {'a',    'e',    0x301,  0x323,  0x307,  0x328,  0xE9,
                           0x1E0B, 0x1100, 0x1161, 0x11A8, 0xAC00, 0x3099, 0x304B,
                           0x9C7,  0x9BE,  0x212B, 0x0F71, 0x0F72, 0x4E2D, ' '};
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (int i = 0; i < 6; ++i) append_utf8(pool[random() % std::size(pool)], text);
    // NFKC of text without compatibility characters takes the path without segments.
    ASSERT_EQ(normalize(text, NormalForm::kNfc), normalize(text, NormalForm::kNfkc));
    ASSERT_EQ(normalize(normalize(text, NormalForm::kNfd), NormalForm::kNfc),
              normalize(text, NormalForm::kNfc));
  }
}

TEST(Unicode, LongRunsOfMarksNormalizeInTime) {
  std::string text = "a";
  for (int i = 0; i < 300000; ++i) text += i % 2 ? "\u0301" : "\u0323";
  EXPECT_EQ(normalize(text, NormalForm::kNfc).size(),
            text.size());  // the first mark joins the a: ạ has 3 bytes
}

}  // namespace
}  // namespace tercet::text
