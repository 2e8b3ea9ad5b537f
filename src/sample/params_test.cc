#include "sample/params.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "sample/sample_test.h"

namespace tercet::sample {
namespace {

using core::SamplingParams;
using testing::HasSubstr;

TEST(Params, DefaultsAndLimitsAreValid) {
  EXPECT_TRUE(validate({}).ok());
  SamplingParams params;
  params.temperature = 0;
  params.top_k = -1;
  params.top_p = 0;
  params.min_p = 1;
  params.typical_p = 0;
  params.presence_penalty = -2;
  params.frequency_penalty = 2;
  params.logit_bias = {{0, -100.0f}, {9, 100.0f}};
  params.num_logprobs = 20;
  EXPECT_TRUE(validate(params).ok());
  EXPECT_TRUE(validate(params, 10).ok());
}

TEST(Params, ErrorsNameTheFieldTheValueAndTheRange) {
  struct Case {
    const char* field;
    const char* found;
    const char* range;
    std::function<void(SamplingParams&)> set;
  };
  const Case cases[] = {
      {"temperature", "nan", "at least 0", [](auto& p) { p.temperature = kNaN; }},
      {"temperature", "-0.5", "at least 0", [](auto& p) { p.temperature = -0.5f; }},
      {"temperature", "inf", "finite", [](auto& p) { p.temperature = kInfinity; }},
      {"top_k", "-2", "at least 1", [](auto& p) { p.top_k = -2; }},
      {"top_p", "nan", "between 0 and 1", [](auto& p) { p.top_p = kNaN; }},
      {"top_p", "1.5", "between 0 and 1", [](auto& p) { p.top_p = 1.5f; }},
      {"min_p", "nan", "between 0 and 1", [](auto& p) { p.min_p = kNaN; }},
      {"min_p", "-1", "between 0 and 1", [](auto& p) { p.min_p = -1; }},
      {"typical_p", "nan", "between 0 and 1", [](auto& p) { p.typical_p = kNaN; }},
      {"repetition_penalty", "0", "above 0", [](auto& p) { p.repetition_penalty = 0; }},
      {"repetition_penalty", "nan", "above 0", [](auto& p) { p.repetition_penalty = kNaN; }},
      {"presence_penalty", "2.5", "between -2 and 2", [](auto& p) { p.presence_penalty = 2.5f; }},
      {"frequency_penalty", "nan", "between -2 and 2", [](auto& p) { p.frequency_penalty = kNaN; }},
      {"logit_bias", "-1", "0 or more",
       [](auto& p) {
         p.logit_bias = {{-1, 1.0f}};
       }},
      {"logit_bias", "inf", "finite",
       [](auto& p) {
         p.logit_bias = {{1, -kInfinity}};
       }},
      {"num_logprobs", "-2", "at least 0", [](auto& p) { p.num_logprobs = -2; }},
  };
  for (const Case& c : cases) {
    SamplingParams params;
    c.set(params);
    Status status = validate(params);
    ASSERT_FALSE(status.ok()) << c.field << " " << c.found;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(status.error().where, c.field);
    EXPECT_THAT(status.error().message, HasSubstr(c.found));
    EXPECT_THAT(status.error().message, HasSubstr(c.range));
  }
}

TEST(Params, BiasBeyondTheVocabularyIsAnError) {
  SamplingParams params;
  params.logit_bias = {{10, 1.0f}};
  EXPECT_TRUE(validate(params).ok());
  EXPECT_EQ(validate(params, 10).error().message, "names token 10; ids are between 0 and 9");
}

}  // namespace
}  // namespace tercet::sample
