#include "base/float8.h"

#include <gtest/gtest.h>

namespace tercet {
namespace {

struct Format {
  uint8_t (*round)(float);
  float (*widen)(uint8_t);
  uint8_t largest;
  int mantissa_bits, bias;
};

class Float8 : public testing::TestWithParam<Format> {};

TEST_P(Float8, WidensAsTheSpecificationSays) {
  const Format& f = GetParam();
  for (int code = 0; code <= f.largest; ++code) {
    const int exponent = code >> f.mantissa_bits, mantissa = code & ((1 << f.mantissa_bits) - 1);
    const int significand = exponent == 0 ? mantissa : mantissa + (1 << f.mantissa_bits);
    const float value =
        std::ldexp(static_cast<float>(significand), std::max(exponent, 1) - f.bias - f.mantissa_bits);
    EXPECT_EQ(f.widen(static_cast<uint8_t>(code)), value) << code;
    EXPECT_EQ(f.widen(static_cast<uint8_t>(code | 0x80)), -value) << code;
  }
}

TEST_P(Float8, RoundsToTheNearestTiesToEven) {
  const Format& f = GetParam();
  for (int code = 0; code <= f.largest; ++code) {
    const float value = f.widen(static_cast<uint8_t>(code));
    EXPECT_EQ(f.round(value), code);
    EXPECT_EQ(f.round(-value), code | 0x80);
    if (code == f.largest) break;
    const float next = f.widen(static_cast<uint8_t>(code + 1)), middle = (value + next) / 2;
    EXPECT_EQ(f.round(middle), code + (code & 1)) << code;
    EXPECT_EQ(f.round(std::nextafter(middle, 0.0f)), code) << code;
    EXPECT_EQ(f.round(std::nextafter(middle, 1e9f)), code + 1) << code;
  }
}

TEST_P(Float8, SaturatesAndKeepsNan) {
  const Format& f = GetParam();
  EXPECT_EQ(f.round(1e30f), f.largest);
  EXPECT_EQ(f.round(-INFINITY), f.largest | 0x80);
  EXPECT_TRUE(std::isnan(f.widen(f.round(NAN))));
}

INSTANTIATE_TEST_SUITE_P(Formats, Float8,
                         testing::Values(Format{f32_to_e4m3, e4m3_to_f32, 0x7E, 3, 7},
                                         Format{f32_to_e5m2, e5m2_to_f32, 0x7B, 2, 15}),
                         [](const auto& info) { return info.param.bias == 7 ? "e4m3" : "e5m2"; });

}  // namespace
}  // namespace tercet
