#include "text/added_tokens.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

namespace tercet::text {
namespace {

using testing::ElementsAre;

std::vector<std::string> split(std::vector<AddedToken> tokens, MatchOrder order, std::string_view text,
                               bool parse_special = true) {
  std::vector<Fragment> fragments;
  AddedTokenMatcher(std::move(tokens), order).split(text, SpecialPlaces(parse_special), fragments);
  std::vector<std::string> out;
  for (const Fragment& f : fragments) {
    out.push_back(f.id == kNoToken ? std::string(f.text) : fmt::format("#{}:{}", f.id, f.text));
  }
  return out;
}

TEST(AddedTokens, LongestFirstAndLeftmostLongestDiffer) {
  const std::vector<AddedToken> tokens = {{1, "ab"}, {2, "bcd"}, {3, "a"}};
  EXPECT_THAT(split(tokens, MatchOrder::kLongestFirst, "xabcd a"),
              ElementsAre("x", "#3:a", "#2:bcd", " ", "#3:a"));
  EXPECT_THAT(split(tokens, MatchOrder::kLeftmostLongest, "xabcd a"),
              ElementsAre("x", "#1:ab", "cd ", "#3:a"));
}

TEST(AddedTokens, SpecialOnesOnlyWhereParsed) {
  const std::vector<AddedToken> tokens = {{1, "<s>", true}, {2, "<tool>"}};
  for (const MatchOrder order : {MatchOrder::kLongestFirst, MatchOrder::kLeftmostLongest}) {
    EXPECT_THAT(split(tokens, order, "<s><tool>", true), ElementsAre("#1:<s>", "#2:<tool>"));
    EXPECT_THAT(split(tokens, order, "<s><tool>", false), ElementsAre("<s>", "#2:<tool>"));
  }
}

TEST(AddedTokens, StripWhiteSpace) {
  AddedToken token{1, "<m>"};
  token.lstrip = token.rstrip = true;
  EXPECT_THAT(split({token}, MatchOrder::kLongestFirst, "a \t<m> \nb"), ElementsAre("a", "#1:<m>", "b"));
  EXPECT_THAT(split({token}, MatchOrder::kLeftmostLongest, "a \u3000<m>\u2003b"),
              ElementsAre("a", "#1: \u3000<m>\u2003", "b"));
  EXPECT_THAT(split({token}, MatchOrder::kLeftmostLongest, " <m> <m> "), ElementsAre("#1: <m> ", "#1:<m> "));
}

TEST(AddedTokens, SingleWord) {
  AddedToken token{1, "cat"};
  token.single_word = true;
  EXPECT_THAT(split({token}, MatchOrder::kLeftmostLongest, "cat cats,cat_ écat (cat)"),
              ElementsAre("#1:cat", " cats,cat_ écat (", "#1:cat", ")"));
}

TEST(AddedTokens, RunsOfRunTokens) {
  std::vector<AddedToken> tokens;
  for (int n = 1; n <= 31; ++n) tokens.push_back({n, std::string(static_cast<size_t>(n), '\n')});
  EXPECT_THAT(split(tokens, MatchOrder::kLongestFirst, std::string(35, '\n')).size(), 2u);
  EXPECT_THAT(split(tokens, MatchOrder::kLeftmostLongest, std::string(1 << 20, '\n')).size(),
              ((1 << 20) + 30) / 31);
}

// The definition: all occurrences of the longest token first, then of the next in what is left.
TEST(AddedTokens, LongestFirstAsDefined) {
  std::mt19937 random(9);
  for (int round = 0; round < 20000; ++round) {
    const auto word = [&](size_t length) {
      std::string s;
      for (size_t i = 0; i < length; ++i) s += static_cast<char>('a' + random() % 2);
      return s;
    };
    std::map<size_t, std::string, std::greater<>>
        tokens;  // one of each length: the order among equals is not defined
    for (int i = 0; i < 3; ++i) {
      std::string token = word(1 + random() % 4);
      tokens[token.size()] = token;
    }
    const std::string text = word(1 + random() % 16);
    std::vector<std::string> expected = {text};
    std::vector<AddedToken> added;
    for (const auto& [length, token] : tokens) {
      added.push_back({static_cast<TokenId>(length), token});
      std::vector<std::string> next;
      for (std::string part : expected) {
        for (size_t at; part[0] != '#' && (at = part.find(token)) != part.npos;
             part = part.substr(at + length)) {
          if (at > 0) next.push_back(part.substr(0, at));
          next.push_back(fmt::format("#{}:{}", length, token));
        }
        if (!part.empty()) next.push_back(part);
      }
      expected = next;
    }
    ASSERT_EQ(split(added, MatchOrder::kLongestFirst, text), expected) << text;
  }
}

TEST(AddedTokens, HugeClustersAreAsSmallOnes) {
  const std::vector<AddedToken> tokens = {{1, "a"}, {2, "aa"}, {4, "aaaa"}};
  const auto parts = split(tokens, MatchOrder::kLongestFirst, fmt::format("b{}b", std::string(40003, 'a')));
  ASSERT_EQ(parts.size(), 1u + 10000 + 2 + 1);
  EXPECT_EQ(parts[10000], "#4:aaaa");
  EXPECT_EQ(parts[10001], "#2:aa");
  EXPECT_EQ(parts[10002], "#1:a");
}

TEST(AddedTokens, FindsByContent) {
  const AddedTokenMatcher matcher({{4, "b"}, {5, "a"}, {6, ""}, {7, "a"}}, MatchOrder::kLongestFirst);
  EXPECT_EQ(matcher.find("a")->id, 7) << "of equal contents the last";
  EXPECT_EQ(matcher.find("c"), nullptr);
  EXPECT_EQ(matcher.find(""), nullptr);
}

}  // namespace
}  // namespace tercet::text
