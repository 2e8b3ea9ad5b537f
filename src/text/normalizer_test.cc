#include "text/normalizer.h"

#include <gtest/gtest.h>

namespace tercet::text {
namespace {

std::string apply(std::vector<NormalizerStep> steps, std::string_view text, bool is_first = true) {
  const auto normalizer = Normalizer::create(std::move(steps));
  EXPECT_TRUE(normalizer.ok()) << normalizer.error().to_string();
  return normalizer->apply(text, is_first);
}

NormalizerStep step(NormalizerKind kind, std::string pattern = {}, std::string content = {}) {
  NormalizerStep s;
  s.kind = kind;
  s.pattern = std::move(pattern);
  s.content = std::move(content);
  return s;
}

TEST(Normalizer, StepsApplyInOrder) {
  EXPECT_EQ(apply({step(NormalizerKind::kLowercase), step(NormalizerKind::kReplace, "a", "b")}, "AaX"),
            "bbx");
  EXPECT_EQ(apply({step(NormalizerKind::kReplace, "a", "b"), step(NormalizerKind::kLowercase)}, "AaX"),
            "abx");
  EXPECT_EQ(apply({}, "x"), "x");
}

TEST(Normalizer, Replace) {
  NormalizerStep spaces = step(NormalizerKind::kReplace, " {2,}", "_");
  spaces.is_regex = true;
  EXPECT_EQ(apply({spaces}, "a  b c   d"), "a_b c_d");
  EXPECT_EQ(apply({step(NormalizerKind::kReplace, "aa", "a")}, "aaaaa"), "aaa");
  spaces.pattern.push_back('(');
  EXPECT_FALSE(Normalizer::create({spaces}).ok());
}

// What Hugging Face's tokenizers 0.23 gives.
TEST(Normalizer, ReplaceOfEmptyMatches) {
  const auto replace = [](std::string pattern, std::string_view text) {
    NormalizerStep dashes = step(NormalizerKind::kReplace, std::move(pattern), "-");
    dashes.is_regex = true;
    return apply({dashes}, text);
  };
  EXPECT_EQ(replace("(?=[A-Z])", "aBbC"), "a-Bb-C");
  EXPECT_EQ(replace("x*", "aBbC"), "-a-B-b-C-");
  EXPECT_EQ(replace("x*", "xxa"), "-a-");
  EXPECT_EQ(replace("x*", "\u00e9 a\u00e9"), "-\u00e9- -a-\u00e9-");
  EXPECT_EQ(replace("x*", ""), "");
  EXPECT_EQ(replace("(?=b)|b", "bab"), "-ba-b");
  EXPECT_EQ(replace("^", "abcx"), "-abcx");
  EXPECT_EQ(replace("$", "abcx"), "abcx-");
  EXPECT_EQ(replace("\\b", "\u00e9 a\u00e9"), "-\u00e9- -a\u00e9-");
  EXPECT_EQ(replace("(?<=a)", "bab"), "ba-b");
}

TEST(Normalizer, Prepend) {
  NormalizerStep always = step(NormalizerKind::kPrepend, {}, "_");
  EXPECT_EQ(apply({always}, "_a", false), "__a");
  EXPECT_EQ(apply({always}, ""), "");
  NormalizerStep unless = step(NormalizerKind::kPrependUnless, {}, "_");
  EXPECT_EQ(apply({unless}, "_a"), "_a");
  unless.only_first = true;
  EXPECT_EQ(apply({unless}, "a", true), "_a");
  EXPECT_EQ(apply({unless}, "a", false), "a");
}

TEST(Normalizer, StripAndCollapse) {
  EXPECT_EQ(apply({step(NormalizerKind::kStripLeft)}, "\u3000 a "), "a ");
  EXPECT_EQ(apply({step(NormalizerKind::kStripRight)}, " a\t\u2003"), " a");
  EXPECT_EQ(apply({step(NormalizerKind::kStripLeft), step(NormalizerKind::kStripRight)}, " \n "), "");
  EXPECT_EQ(apply({step(NormalizerKind::kCollapseSpaces)}, "  a   b "), "a b");
}

TEST(Normalizer, Bert) {
  EXPECT_EQ(apply({step(NormalizerKind::kBert)}, std::string_view("a\tb\0c中\u200D"
                                                                  "d",
                                                                  12)),
            "a bc 中 d");
  EXPECT_EQ(apply({step(NormalizerKind::kNfd), step(NormalizerKind::kStripAccents)}, "Él"), "El");
}

// A charsmap with the one entry "A" -> "bc": units of a double array as darts-clone lays them out.
std::string charsmap() {
  std::vector<uint32_t> units(129);
  units[0] = 1 << 10;                       // the root's children are at 1 ^ byte
  units[0x40] = 'A' | 1 << 8 | 0xC0 << 10;  // reached by 'A', has a value at 0x40 ^ 0xC0
  units[0x80] = 1U << 31;                   // the value 0: the first replacement
  std::string blob;
  const auto append = [&](uint32_t word) {
    for (int byte = 0; byte < 4; ++byte) blob += static_cast<char>(word >> (8 * byte));
  };
  append(static_cast<uint32_t>(units.size() * 4));
  for (const uint32_t unit : units) append(unit);
  blob.append("bc\0", 3);
  return blob;
}

TEST(Normalizer, Charsmap) {
  EXPECT_EQ(apply({step(NormalizerKind::kCharsmap, {}, charsmap())}, "AxAé"), "bcxbcé");
  EXPECT_FALSE(Normalizer::create({step(NormalizerKind::kCharsmap, {}, charsmap().substr(0, 100))}).ok());
  EXPECT_FALSE(Normalizer::create({step(NormalizerKind::kCharsmap, {}, "abc")}).ok());
}

}  // namespace
}  // namespace tercet::text
