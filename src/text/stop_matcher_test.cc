#include "text/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

namespace tercet::text {
namespace {

struct Streamed {
  std::string text;
  std::optional<int> matched;
};

// Pushes `text` in parts of `step` bytes.
Streamed stream(StopMatcher matcher, std::string_view text, size_t step) {
  Streamed out;
  for (size_t i = 0; i < text.size(); i += step) out.text += matcher.push(text.substr(i, step)).text;
  out.text += matcher.flush();
  out.matched = matcher.matched();
  return out;
}

// Row A2 of the reports: the beginning of a stop string never leaks, text after it never appears.
TEST(StopMatcher, HoldsBackWhatMayBeAStop) {
  StopMatcher m({"</s>"});
  EXPECT_EQ(m.push("hello <").text, "hello ");
  EXPECT_EQ(m.push("/").text, "");
  EXPECT_EQ(m.push("b>").text, "</b>");
  EXPECT_EQ(m.push(" bye</").text, " bye");
  const auto end = m.push("s>tail");
  EXPECT_EQ(end.text, "");
  EXPECT_EQ(end.matched, 0);
  EXPECT_EQ(m.push("more").text, "");
  EXPECT_EQ(m.flush(), "");
}

TEST(StopMatcher, ReleasesTheHeldTextAtTheEnd) {
  StopMatcher m({"END"});
  EXPECT_EQ(m.push("the EN").text, "the ");
  EXPECT_EQ(m.flush(), "EN");
  EXPECT_FALSE(m.matched());
}

TEST(StopMatcher, EarliestEndWins) {
  EXPECT_EQ(stream(StopMatcher({"abcd", "bc"}), "xabcd", 1).matched, 1);
  EXPECT_EQ(stream(StopMatcher({"abcd", "bc"}), "xabcd", 5).text, "xa");
  EXPECT_EQ(stream(StopMatcher({"c", "bc"}), "abc", 3).text, "a") << "of those that end together the longest";
  EXPECT_EQ(stream(StopMatcher({"x", "x"}), "x", 1).matched, 0);
}

TEST(StopMatcher, OverlappingBeginnings) {
  EXPECT_EQ(stream(StopMatcher({"aab"}), "aaaab", 1).text, "aa");
  EXPECT_EQ(stream(StopMatcher({"abab!"}), "ababab!", 2).text, "ab");
}

TEST(StopMatcher, WithoutStopStringsEverythingPasses) {
  StopMatcher none, empty({""});
  EXPECT_EQ(none.push("abc").text, "abc");
  EXPECT_EQ(empty.push("abc").text, "abc");
}

TEST(StopMatcher, IsAValue) {
  StopMatcher m({"stop"});
  EXPECT_EQ(m.push("a st").text, "a ");
  const StopMatcher before = m;
  EXPECT_EQ(m.push("op").matched, 0);
  m = before;
  EXPECT_EQ(m.push("ay").text, "stay");
}

TEST(StopMatcher, EqualsASearchOfTheWholeText) {
  std::mt19937 random(5);
  const auto word = [&](size_t length) {
    std::string s;
    for (size_t i = 0; i < length; ++i) s += static_cast<char>('a' + random() % 2);
    return s;
  };
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stops;
    for (size_t i = 0; i < 1 + random() % 4; ++i) stops.push_back(word(1 + random() % 5));
    const std::string text = word(random() % 20);
    size_t best_end = text.npos, best_begin = text.npos;
    for (const std::string& stop : stops) {
      const size_t at = text.find(stop);
      if (at == text.npos) continue;
      const size_t end = at + stop.size();
      if (end < best_end || (end == best_end && at < best_begin)) best_end = end, best_begin = at;
    }
    const Streamed out = stream(StopMatcher(stops), text, 1 + random() % 3);
    ASSERT_EQ(out.text, text.substr(0, best_begin));
    ASSERT_EQ(out.matched.has_value(), best_end != text.npos);
  }
}

TEST(StopMatcher, ManyStopStrings) {
  std::vector<std::string> stops;
  for (int i = 0; i < 10000; ++i) stops.push_back("<stop " + std::to_string(i) + ">");
  const Streamed out = stream(StopMatcher(stops), "some <stop text <stop 7777> more", 1);
  EXPECT_EQ(out.text, "some <stop text ");
  EXPECT_EQ(out.matched, 7777);
}

}  // namespace
}  // namespace tercet::text
