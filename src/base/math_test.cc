// base/math against values computed with 400 bits (mpmath) and, over many arguments, against the C library in
// long double.
#include "base/math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace tercet {
namespace {

struct Row {
  double x, expected;
};
struct PowRow {
  double base, exponent, expected;
};

constexpr Row kExp[] = {
    {0x1.0000000000000p-1, 0x1.a61298e1e069cp+0},    {-0x1.0000000000000p-1, 0x1.368b2fc6f960ap-1},
    {0x1.0000000000000p+0, 0x1.5bf0a8b145769p+1},    {-0x1.0000000000000p+0, 0x1.78b56362cef38p-2},
    {0x1.62e42fead449cp-2, 0x1.6a09e66640654p+0},    {-0x1.62e43096a0c0dp-2, 0x1.6a09e62ce9a31p-1},
    {0x1.12e0be826d695p-30, 0x1.000000044b830p+0},   {-0x1.4400000000000p+4, 0x1.b93de1e27ca3bp-30},
    {0x1.6200000000000p+6, 0x1.99b987155fe28p+127},  {-0x1.9fe147ae147aep+6, 0x1.008843e713351p-150},
    {0x1.5e0cccccccccdp+9, 0x1.058614179b2a5p+1010}, {-0x1.5e26666666666p+9, 0x1.9a5615b10648ap-1011},
    {0x1.62d999999999ap+9, 0x1.d75ae7a50ee14p+1023}, {-0x1.6226666666666p+9, 0x1.19e98b83de7a3p-1022},
};
constexpr Row kLog[] = {
    {0x1.0000000000000p-1, -0x1.62e42fefa39efp-1},   {0x1.ffffffff24190p-1, -0x1.b7ce00005e728p-34},
    {0x1.000000006df38p+0, 0x1.b7cdffffa18d8p-34},   {0x1.6a09e55c0fcb5p+0, 0x1.62e42cf9ee3ebp-2},
    {0x1.6a09e688b59bbp+0, 0x1.62e4304c4a71fp-2},    {0x1.8000000000000p+1, 0x1.193ea7aad030bp+0},
    {0x1.56e1fc2f8f359p-997, -0x1.5963447f87fb5p+9}, {0x1.7e43c8800759cp+996, 0x1.5963447f87fb5p+9},
    {0x1.0000000000000p-33, -0x1.6dfb516f20bbfp+4},  {0x1.8000000000000p-1, -0x1.269621134db92p-2},
    {0x1.4000000000000p+0, 0x1.c8ff7c79a9a22p-3},    {0x1.6deb851eb851fp+4, 0x1.909e237d56f0ep+1},
    {0x1.ad7f29abcaf48p-25, -0x1.0cfad9c367c42p+4},  {0x1.e240c9fbe76c9p+16, 0x1.77281cad8a844p+3},
};
constexpr Row kSin[] = {
    {0x1.4f8b588e368f1p-17, 0x1.4f8b588e1e8a2p-17}, {0x1.3333333333333p-2, 0x1.2e9cd95baba33p-2},
    {0x1.921fafc8b007ap-1, 0x1.6a09e28779cb0p-1},   {0x1.921fd1569f490p-1, 0x1.6a09fa4179869p-1},
    {0x1.921fb54442d18p+0, 0x1.0000000000000p+0},   {0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53},
    {0x1.4000000000000p+3, -0x1.1689ef5f34f52p-1},  {0x1.ffff000000000p+16, -0x1.268613f60babcp-1},
    {0x1.e848000000000p+19, -0x1.6664b2568d867p-2}, {0x1.858613e1609c5p+22, -0x1.4b6374e025f07p-7},
    {0x1.312cfe0000000p+23, 0x1.fb38658ea8f8cp-1},  {-0x1.312cfd8000000p+23, -0x1.fcb85272a8d4fp-1},
    {0x1.7d78400000000p+25, 0x1.a6bb2b80d0cf6p-1},
};
constexpr Row kCos[] = {
    {0x1.4f8b588e368f1p-17, 0x1.ffffffff920c8p-1},  {0x1.3333333333333p-2, 0x1.e921dd42f09bap-1},
    {0x1.921fafc8b007ap-1, 0x1.6a09ea486da3fp-1},   {0x1.921fd1569f490p-1, 0x1.6a09d28e6cdc7p-1},
    {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54},  {0x1.921fb54442d18p+1, -0x1.0000000000000p+0},
    {0x1.4000000000000p+3, -0x1.ad9ac890c6b1fp-1},  {0x1.ffff000000000p+16, -0x1.a2cebbb513e7cp-1},
    {0x1.e848000000000p+19, 0x1.df9df9906d32cp-1},  {0x1.858613e1609c5p+22, 0x1.fff94c0b69055p-1},
    {0x1.312cfe0000000p+23, -0x1.172fbc27daf4ap-3}, {-0x1.312cfd8000000p+23, 0x1.cee45b1e88d27p-4},
    {0x1.7d78400000000p+25, 0x1.20dd2cbadfca7p-1},
};
constexpr Row kTanh[] = {
    {0x1.12e0be826d695p-30, 0x1.12e0be826d695p-30}, {0x1.0624dd2f1a9fcp-10, 0x1.0624d77516ce2p-10},
    {0x1.999999999999ap-4, 0x1.983d7795f413ap-4},   {0x1.5c28f5c28f5c3p-3, 0x1.58d8296a405bdp-3},
    {0x1.62eb1c432ca58p-3, 0x1.5f6851a72a671p-3},   {0x1.6666666666666p-2, 0x1.5872d4a8651d6p-2},
    {0x1.0000000000000p-1, 0x1.d9353d7568af3p-2},   {0x1.0000000000000p+0, 0x1.85efab514f394p-1},
    {-0x1.4000000000000p+1, -0x1.f9258260a71c2p-1}, {0x1.4000000000000p+2, 0x1.fff419668df11p-1},
    {0x1.2e66666666666p+4, 0x1.fffffffffffffp-1},   {-0x1.5800000000000p+4, -0x1.0000000000000p+0},
};
constexpr PowRow kPow[] = {
    {0x1.3880000000000p+13, -0x1.0000000000000p-6, 0x1.bb5fad00ab22cp-1},
    {0x1.3880000000000p+13, -0x1.f800000000000p-1, 0x1.e459c57e28a47p-14},
    {0x1.e848000000000p+19, -0x1.0000000000000p-1, 0x1.0624dd2f1a9fcp-10},
    {0x1.e848000000000p+18, -0x1.a800000000000p-1, 0x1.4014d2eb4ec72p-16},
    {0x1.24f8000000000p+17, 0x1.0000000000000p-7, 0x1.18fb56bbfd1d5p+0},
    {0x1.0000000000000p+1, 0x1.0000000000000p-1, 0x1.6a09e667f3bcdp+0},
    {0x1.000001ad7f29bp+0, 0x1.dcd6500000000p+29, 0x1.349445c228792p+144},
    {0x1.3333333333333p-2, 0x1.f440000000000p+8, 0x1.0f2714cab2488p-869},
    {0x1.2a05f20000000p+33, 0x1.e800000000000p+4, 0x1.23a516e82d9bap+1013},
    {0x1.0000000000000p+3, -0x1.5555555555555p-2, 0x1.0000000000000p-1},
    {0x1.56e1fc2f8f359p-997, 0x1.fae147ae147aep-1, 0x1.4ed8b04671dc9p-987},
    {0x1.edd2f1a9fbe77p+6, -0x1.1800000000000p+7, 0x1.3b4b99ce82b80p-973},
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double ulp(double x) {
  x = std::fabs(x);
  return std::nextafter(x, kInfinity) - x;
}

double ulps_from(double actual, long double expected) {
  return static_cast<double>(std::fabs(actual - expected) / ulp(static_cast<double>(expected)));
}

template <class F, size_t N>
void expect_ulps(F f, const Row (&rows)[N], double bound) {
  for (const Row& row : rows) EXPECT_LE(ulps_from(f(row.x), row.expected), bound) << "x = " << row.x;
}

// `count` arguments, uniform in [low, high].
template <class Body>
void for_random(double low, double high, int count, Body body) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(low, high);
  for (int i = 0; i < count; ++i) body(uniform(random));
}

// The table holds correctly rounded values, so that a bound of 1 ulp here means an error below 1.5 ulp.
TEST(Math, MatchesHighPrecisionTables) {
  expect_ulps(math::exp, kExp, 1);
  expect_ulps(math::log, kLog, 0);
  expect_ulps(math::tanh, kTanh, 2);
  for (const Row& row : kSin) EXPECT_NEAR(math::sin(row.x), row.expected, 2.3e-16) << row.x;
  for (const Row& row : kCos) EXPECT_NEAR(math::cos(row.x), row.expected, 2.3e-16) << row.x;
  for (const PowRow& row : kPow) {
    EXPECT_NEAR(math::pow(row.base, row.exponent) / row.expected, 1, 1e-15)
        << row.base << " ^ " << row.exponent;
  }
}

TEST(Math, ExpErrorIsBelowOneUlp) {
  auto check = [](double x) { ASSERT_LT(ulps_from(math::exp(x), std::exp((long double)x)), 1) << x; };
  for_random(-708, 709, 100'000, check);
  for_random(-1, 1, 100'000, check);
}

TEST(Math, LogErrorIsBelow055Ulp) {
  auto check = [](double x) { ASSERT_LT(ulps_from(math::log(x), std::log((long double)x)), 0.55) << x; };
  for_random(0, 1, 100'000, check);
  for_random(0.9, 1.1, 100'000, check);
  for_random(-1022, 1023, 100'000, [&](double e) { check(std::exp2(e)); });
}

TEST(Math, SinAndCosHoldForRotaryAngles) {
  auto check = [](double x) {
    ASSERT_NEAR(math::sin(x), (double)std::sin((long double)x), 2.3e-16) << x;
    ASSERT_NEAR(math::cos(x), (double)std::cos((long double)x), 2.3e-16) << x;
  };
  for_random(-10, 10, 100'000, check);
  for_random(-1e7, 1e7, 100'000, check);
  for (int n = 0; n < 100'000; ++n) check(n * 1.5707963267948966);  // where the reduction cancels most
}

TEST(Math, PowHoldsForRotaryBases) {
  for_random(-1, 1, 100'000, [](double y) {
    for (double base : {1e4, 1e6, 5e5, 3.0}) {
      long double expected = std::pow((long double)base, (long double)y);
      ASSERT_LT(std::fabs((long double)math::pow(base, y) / expected - 1), 1e-15L) << base << " ^ " << y;
    }
  });
}

TEST(Math, TanhErrorIsBelowThreeUlps) {
  auto check = [](double x) { ASSERT_LT(ulps_from(math::tanh(x), std::tanh((long double)x)), 3) << x; };
  for_random(-25, 25, 100'000, check);
  for_random(-0.4, 0.4, 100'000, check);
}

TEST(Math, SpecialValues) {
  EXPECT_EQ(math::exp(0), 1);
  EXPECT_EQ(math::exp(kInfinity), kInfinity);
  EXPECT_EQ(math::exp(-kInfinity), 0);
  EXPECT_EQ(math::exp(709.79), kInfinity);
  EXPECT_EQ(math::exp(-708.4), 0);
  EXPECT_EQ(math::log(1), 0);
  EXPECT_EQ(math::log(0.0), -kInfinity);
  EXPECT_EQ(math::log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(math::log(-1)));
  EXPECT_EQ(math::pow(2, 10), 1024);
  EXPECT_EQ(math::pow(0.0, 0), 1);
  EXPECT_EQ(math::pow(10, 1e300), kInfinity);
  EXPECT_EQ(math::pow(10, -1e300), 0);
  EXPECT_EQ(math::pow(1, kInfinity), 1);
  EXPECT_TRUE(std::isnan(math::pow(-2, 2)));
  EXPECT_TRUE(std::isnan(math::sin(1.1e8)));
  EXPECT_EQ(math::cos(0), 1);
  EXPECT_TRUE(std::signbit(math::sin(-0.0)));
  EXPECT_EQ(math::tanh(kInfinity), 1);
  EXPECT_EQ(math::tanh(-kInfinity), -1);
  for (auto f : {math::exp, math::log, math::sin, math::cos, math::tanh}) EXPECT_TRUE(std::isnan(f(kNaN)));
}

#if defined(__SSE__)
TEST(Math, FlushToZeroChangesNothing) {
  std::vector<double> arguments = {1e-310, -1e-310, 0x1p-1022, -708.3, -708.39, -709, 1e-200, 1, 3e5, 1e7};
  auto evaluate = [&] {
    std::vector<uint64_t> bits;
    for (double x : arguments) {
      for (auto f : {math::exp, math::log, math::sin, math::cos, math::tanh}) {
        bits.push_back(std::bit_cast<uint64_t>(f(x)));
      }
      bits.push_back(std::bit_cast<uint64_t>(math::pow(10, x)));
    }
    return bits;
  };
  std::vector<uint64_t> plain = evaluate();
  unsigned saved = _mm_getcsr();
  _mm_setcsr(saved | 0x8040);  // FTZ and DAZ
  std::vector<uint64_t> flushed = evaluate();
  _mm_setcsr(saved);
  EXPECT_EQ(plain, flushed);
}
#endif

}  // namespace
}  // namespace tercet
