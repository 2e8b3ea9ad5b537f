#include "text/splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "text/pre_tokenizers.h"
#include "text/split_scanners.h"
#include "text/unicode.h"

namespace tercet::text {
namespace {

using testing::ElementsAre;

std::vector<std::string> split(SplitPattern pattern, std::string_view text, bool use_scanners = true) {
  const auto splitter = Splitter::create(std::move(pattern), use_scanners);
  EXPECT_TRUE(splitter.ok()) << splitter.error().to_string();
  std::vector<std::string_view> pieces;
  splitter->split(text, pieces);
  return {pieces.begin(), pieces.end()};
}

std::string random_text(std::mt19937& random, size_t length) {
  static const char32_t kPool[] = {
      ' ',    ' ',    ' ',   '\n',  '\r',   '\t',  0xA0,  0x3000,  0x2028, 'a',    'b',     'A',
      's',    't',    'r',   'e',   'v',    'm',   'l',   'd',     'S',    'L',    '\'',    '\'',
      0x2019, '.',    ',',   '!',   '$',    '<',   '/',   '_',     '0',    '1',    '9',     0x663,
      0xB2,   0x2167, 0xE9,  0x17F, 0x212A, 0x301, 0x93E, 0x915,   0x4E2D, 0x3042, 0x1F600, 0xFE0F,
      0x200D, 0x1C5,  0x2B0, 0x378, 0xAD,   0,     0x7F,  0x10FFFF};
  std::string text;
  for (size_t i = 0; i < length; ++i) append_utf8(kPool[random() % std::size(kPool)], text);
  return text;
}

TEST(Splitter, EveryScannerSplitsAsItsExpression) {
  std::mt19937 random(3);
  for (const NamedScanner& named : split_scanners()) {
    const auto fast = Splitter::create({std::string(named.regex)});
    const auto slow = Splitter::create({std::string(named.regex)}, false);
    ASSERT_TRUE(fast.ok() && slow.ok()) << named.regex;
    ASSERT_TRUE(fast->has_scanner() && !slow->has_scanner());
    for (int round = 0; round < 3000; ++round) {
      const std::string text = random_text(random, 1 + random() % 24);
      std::vector<std::string_view> a, b;
      fast->split(text, a);
      slow->split(text, b);
      ASSERT_EQ(a, b) << named.regex << "\n" << testing::PrintToString(text);
    }
  }
}

TEST(Splitter, PiecesAreTheText) {
  std::mt19937 random(4);
  for (const std::string_view name : pre_tokenizer_names()) {
    PreTokenizer pre;
    ASSERT_TRUE(find_pre_tokenizer(name, pre));
    for (const SplitPattern& pattern : pre.splits) {
      if (pattern.behavior == SplitBehavior::kRemoved) continue;
      const auto splitter = Splitter::create(pattern);
      ASSERT_TRUE(splitter.ok()) << name << ": " << splitter.error().to_string();
      for (int round = 0; round < 200; ++round) {
        const std::string text = random_text(random, 40);
        std::vector<std::string_view> pieces;
        splitter->split(text, pieces);
        std::string joined;
        for (const std::string_view piece : pieces) {
          EXPECT_FALSE(piece.empty());
          joined += piece;
        }
        ASSERT_EQ(joined, text) << name;
      }
    }
  }
}

TEST(Splitter, GrowsItsStackForLongMatches) {
  const std::string text(1 << 20, 'a');
  for (const std::string_view name : pre_tokenizer_names()) {
    PreTokenizer pre;
    ASSERT_TRUE(find_pre_tokenizer(name, pre));
    std::vector<std::string_view> pieces = {text};
    for (const SplitPattern& pattern : pre.splits) {
      std::vector<std::string_view> next;
      for (const std::string_view piece : pieces) Splitter::create(pattern)->split(piece, next);
      pieces = next;
    }
    EXPECT_EQ(pieces.size(), 1u) << name;
  }
}

TEST(Splitter, WellKnownPatterns) {
  PreTokenizer gpt2, qwen2, llama3;
  ASSERT_TRUE(find_pre_tokenizer("gpt-2", gpt2) && find_pre_tokenizer("qwen2", qwen2) &&
              find_pre_tokenizer("llama-bpe", llama3));
  EXPECT_THAT(split(gpt2.splits[0], "I'll  go, it's 1234!"),
              ElementsAre("I", "'ll", " ", " go", ",", " it", "'s", " 1234", "!"));
  EXPECT_THAT(split(qwen2.splits[0], "I'LL  go\n\n  x=12"),
              ElementsAre("I", "'LL", " ", " go", "\n\n", " ", " x", "=", "1", "2"));
  EXPECT_THAT(split(llama3.splits[0], "12345 \n a.\n\nb"),
              ElementsAre("123", "45", " \n", " a", ".\n\n", "b"));
}

TEST(Splitter, Behaviors) {
  const auto with = [](SplitBehavior behavior, bool invert = false) {
    return split({"-", PatternKind::kLiteral, behavior, invert}, "the-final--countdown");
  };
  EXPECT_THAT(with(SplitBehavior::kIsolated), ElementsAre("the", "-", "final", "-", "-", "countdown"));
  EXPECT_THAT(with(SplitBehavior::kRemoved), ElementsAre("the", "final", "countdown"));
  EXPECT_THAT(with(SplitBehavior::kMergedWithPrevious), ElementsAre("the-", "final-", "-", "countdown"));
  EXPECT_THAT(with(SplitBehavior::kMergedWithNext), ElementsAre("the", "-final", "-", "-countdown"));
  EXPECT_THAT(with(SplitBehavior::kContiguous), ElementsAre("the", "-", "final", "--", "countdown"));
  EXPECT_THAT(with(SplitBehavior::kRemoved, true), ElementsAre("-", "-", "-"));
}

TEST(Splitter, DigitGroupsFromTheRight) {
  const SplitPattern groups{"", PatternKind::kDigitGroups};
  EXPECT_THAT(split(groups, "a1234567b12,123"), ElementsAre("a", "1", "234", "567", "b", "12", ",", "123"));
  const SplitPattern at_end{"", PatternKind::kDigitGroupsAtWordEnd};
  EXPECT_THAT(split(at_end, "1234a 1234"), ElementsAre("1234a ", "1", "234"));
}

TEST(Splitter, EmptyMatchesCut) {
  EXPECT_THAT(split({"(?=b)"}, "abab"), ElementsAre("a", "ba", "b"));
  EXPECT_THAT(split({"x*"}, "aé"), ElementsAre("a", "é"));
}

// Nothing in a text or an expression may keep it busy: where an expression takes too long, the rest is one
// piece.
TEST(Splitter, HostileExpressionsEnd) {
  const std::string run(1 << 17, 'x'), spaces(1 << 15, ' ');
  for (const char* pattern :
       {"(x+x+)+y", "(x|x)*y", "x*y|.", "(?=.*y)x", "(?:x*z|x)*y", "(?s)(?:.)*?x*+z", "(?:(?:x?){20}){20}y",
        "(x(?R)?x)y", "\\s+$|(?<=x)y", "(?s).*?(?=z)", "x{1,60000}y"}) {
    const auto splitter = Splitter::create({pattern});
    if (!splitter.ok()) continue;  // too large for PCRE2
    for (const std::string& text : {run, spaces, run + "y", spaces + "x" + run}) {
      std::vector<std::string_view> pieces;
      splitter->split(text, pieces);
      std::string joined;
      for (const std::string_view piece : pieces) joined += piece;
      ASSERT_EQ(joined, text) << pattern;
    }
  }
  EXPECT_FALSE(Splitter::create({std::string(2000, '(') + std::string(2000, ')')}).ok());
  EXPECT_FALSE(Splitter::create({R"((.*)\1y)"}).ok());
  EXPECT_FALSE(Splitter::create({"((x{60000}){60000}){60000}"}).ok());
}

// A window of the text must not change what matches: words, look-aheads and empty matches that cross its end.
TEST(Splitter, MatchesAreThoseOfTheWholeText) {
  for (const size_t size : {255u, 256u, 257u, 1023u, 1024u, 1025u, 5000u}) {
    const std::string word(size, 'a'), spaces(size, ' ');
    EXPECT_EQ(split({"[a-z]+"}, word + " " + word), (std::vector<std::string>{word, " ", word}));
    EXPECT_EQ(split({R"(\s+(?!\S)|\s+)"}, spaces + "b"),
              (std::vector<std::string>{spaces.substr(1), " ", "b"}));
    EXPECT_EQ(split({"a+(?=b)"}, word + "b" + word), (std::vector<std::string>{word, "b" + word}));
    EXPECT_EQ(split({"a*"}, spaces + word + "b"), [&] {
      std::vector<std::string> pieces(size, " ");
      pieces.push_back(word);
      pieces.push_back("b");
      return pieces;
    }());
    EXPECT_EQ(split({"\\bb"}, spaces + "b" + word), (std::vector<std::string>{spaces, "b", word}));
    EXPECT_EQ(split({"(?<=b)a*"}, spaces.substr(1) + "baaac"),
              (std::vector<std::string>{spaces.substr(1) + "b", "aaa", "c"}));
    EXPECT_EQ(split({"é+"}, word + "é" + word), (std::vector<std::string>{word, "é", word}));
  }
}

TEST(Splitter, BadExpressionIsAnErrorThatShowsThePlace) {
  const auto bad = Splitter::create({"a(b"});
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(bad.error().message, testing::HasSubstr("offset 3"));
  EXPECT_FALSE(Splitter::create({"", PatternKind::kLiteral}).ok());
}

TEST(PreTokenizers, NamesAreUnique) {
  const auto names = pre_tokenizer_names();
  EXPECT_GT(names.size(), 70u);
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  PreTokenizer pre;
  EXPECT_FALSE(find_pre_tokenizer("no-such", pre));
  ASSERT_TRUE(find_pre_tokenizer("glm5", pre));
  EXPECT_TRUE(pre.ignore_merges && pre.no_default_bos && !pre.characters);
  ASSERT_TRUE(find_pre_tokenizer("whitespace", pre));
  EXPECT_THAT(split(pre.splits[0], " a  bc\n"), ElementsAre("a", "bc"));
  EXPECT_TRUE(pre.characters && !pre.escapes_spaces);
}

}  // namespace
}  // namespace tercet::text
