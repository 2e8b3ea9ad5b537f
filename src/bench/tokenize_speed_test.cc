#include "bench/tokenize_speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tercet::bench {
namespace {

TEST(TokenizeSpeed, MeasuresEveryTextAsOftenAsAsked) {
  text::TokenizerSpec spec;
  spec.texts = spec.pieces = {"a", "b"};
  spec.is_control.assign(2, 0);
  const auto tokenizer = text::Tokenizer::create(std::move(spec));
  ASSERT_TRUE(tokenizer.ok());
  const auto speeds = measure_tokenizer(*tokenizer, {{"two", "ab"}, {"one", "xbx"}}, 4);
  ASSERT_EQ(speeds.size(), 2u);
  EXPECT_EQ(speeds[0].tokens, 2u);
  EXPECT_EQ(speeds[1].name, "one");
  EXPECT_EQ(speeds[1].bytes, 3u);
  EXPECT_EQ(speeds[1].tokens, 1u);
  EXPECT_EQ(speeds[1].bytes_per_second.size(), 4u);
  EXPECT_THAT(speeds[0].bytes_per_second, testing::Each(testing::Gt(0)));
}

}  // namespace
}  // namespace tercet::bench
