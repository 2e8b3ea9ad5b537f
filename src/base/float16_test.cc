#include "base/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tercet {
namespace {

// The value of a half by its definition, in double.
double half_value(uint16_t half) {
  const int exponent = half >> 10 & 0x1f;
  const int mantissa = half & 0x3ff;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return half & 0x8000 ? -magnitude : magnitude;
}

bool is_half_nan(uint16_t half) { return (half & 0x7fff) > 0x7c00; }

TEST(Float16, WidensEveryHalfExactly) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float wide = f16_to_f32(half);
    if (is_half_nan(half)) {
      EXPECT_EQ(std::bit_cast<uint32_t>(wide), (bits & 0x8000) << 16 | 0x7fc00000 | (bits & 0x3ff) << 13)
          << bits;
    } else if ((half & 0x7fff) == 0x7c00) {
      EXPECT_EQ(wide, half & 0x8000 ? -INFINITY : INFINITY);
    } else {
      EXPECT_EQ(wide, half_value(half)) << bits;
      EXPECT_EQ(std::signbit(wide), (half & 0x8000) != 0) << bits;
    }
  }
}

TEST(Float16, EveryHalfSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    EXPECT_EQ(f32_to_f16(f16_to_f32(half)), is_half_nan(half) ? half | 0x200 : half) << bits;
  }
}

// Between two neighbouring halves: the middle goes to the even one, everything else to the nearer.
TEST(Float16, RoundsHalfToEvenBetweenAllNeighbours) {
  for (uint16_t low = 0; low < 0x7c00; ++low) {
    const auto high = static_cast<uint16_t>(low + 1);
    const double above = high == 0x7c00 ? 65536.0 : half_value(high);
    const auto middle = static_cast<float>((half_value(low) + above) / 2);
    const uint16_t even = low & 1 ? high : low;
    for (const uint16_t sign : {0, 0x8000}) {
      const float s = sign ? -1.0f : 1.0f;
      EXPECT_EQ(f32_to_f16(s * middle), even | sign) << low;
      EXPECT_EQ(f32_to_f16(s * std::nextafter(middle, 0.0f)), low | sign) << low;
      EXPECT_EQ(f32_to_f16(s * std::nextafter(middle, INFINITY)), high | sign) << low;
    }
  }
}

TEST(Float16, SpecialValues) {
  EXPECT_EQ(f32_to_f16(INFINITY), 0x7c00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::max()), 0x7c00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(f32_to_f16(-0.0f), 0x8000);
  EXPECT_EQ(f32_to_f16(std::bit_cast<float>(0x7f800001u)), 0x7e00);
}

TEST(BFloat16, EveryValueSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    EXPECT_EQ(std::bit_cast<uint32_t>(bf16_to_f32(half)), bits << 16);
    EXPECT_EQ(f32_to_bf16(bf16_to_f32(half)), (half & 0x7fff) > 0x7f80 ? half | 0x40 : half);
  }
}

TEST(BFloat16, RoundsHalfToEvenBetweenAllNeighbours) {
  for (uint32_t low = 0; low < 0x7f80; ++low) {
    const uint32_t middle = low << 16 | 0x8000;
    EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(middle - 1)), low);
    EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(middle)), low + (low & 1));
    EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(middle + 1)), low + 1);
  }
}

TEST(BFloat16, ANaNWithLowPayloadStaysNaN) {
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x7f800001u)), 0x7fc0);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0xffffffffu)), 0xffff);
}

}  // namespace
}  // namespace tercet
