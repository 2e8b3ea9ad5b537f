#include "app/sampling_flags.h"

#include <gtest/gtest.h>

namespace tercet::app {
namespace {

TEST(SamplingFlags, EachSetsItsParameter) {
  core::SamplingParams params;
  for (const auto& [name, value] :
       std::vector<std::pair<const char*, const char*>>{{"temp", "0.5"},
                                                        {"top-k", "40"},
                                                        {"top-p", "0.9"},
                                                        {"min-p", "0.05"},
                                                        {"typical", "0.7"},
                                                        {"repeat-penalty", "1.1"},
                                                        {"presence-penalty", "-0.5"},
                                                        {"frequency-penalty", "0.25"},
                                                        {"seed", "18446744073709551615"}}) {
    EXPECT_TRUE(set_sampling(params, name, value).ok()) << name;
  }
  EXPECT_EQ(
      describe(params),
      "temp 0.5, top-k 40, top-p 0.9, min-p 0.05, typical 0.7, repeat-penalty 1.1, presence-penalty -0.5, "
      "frequency-penalty 0.25, seed 18446744073709551615");
  EXPECT_TRUE(set_sampling(params, "seed", "random").ok());
  EXPECT_FALSE(params.seed.has_value());
}

TEST(SamplingFlags, RefuseWhatIsOutOfRangeOrNoNumber) {
  core::SamplingParams params;
  for (const auto& [name, value] : std::vector<std::pair<const char*, const char*>>{{"temp", "-1"},
                                                                                    {"temp", "nan"},
                                                                                    {"temp", "1x"},
                                                                                    {"temp", ""},
                                                                                    {"top-k", "1.5"},
                                                                                    {"top-p", "1.1"},
                                                                                    {"repeat-penalty", "0"},
                                                                                    {"seed", "-1"},
                                                                                    {"unknown", "1"}}) {
    EXPECT_FALSE(set_sampling(params, name, value).ok()) << name << " " << value;
  }
}

TEST(LogitBias, IsATokenAndANumber) {
  EXPECT_EQ(*parse_logit_bias("15043+1.5"), std::pair(15043, 1.5f));
  EXPECT_EQ(*parse_logit_bias("15043-1"), std::pair(15043, -1.0f));
  EXPECT_EQ(*parse_logit_bias("7=-2"), std::pair(7, -2.0f));
  for (const char* text : {"", "7", "x+1", "7+", "-7+1", "7=nan", "7=-inf", "7+1x"})
    EXPECT_FALSE(parse_logit_bias(text).ok()) << text;
}

}  // namespace
}  // namespace tercet::app
