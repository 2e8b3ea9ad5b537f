#include "base/math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tercet::math {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kMinNormal = std::numeric_limits<double>::min();

constexpr double kInvLn2 = 0x1.71547652b82fep+0;
// ln 2 = kLn2Hi + kLn2Lo; the first has 36 bits, so that k * kLn2Hi is exact for every exponent k.
constexpr double kLn2Hi = 0x1.62e42fefa0000p-1;
constexpr double kLn2Lo = 0x1.cf79abc9e3b3ap-40;

// A value of twice the precision: the sum of both, |lo| at most half an ulp of hi.
struct Pair {
  double hi, lo;
};

// Exact a + b (Knuth).
Pair two_sum(double a, double b) {
  double sum = a + b;
  double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

// Exact a + b for |a| >= |b| (Dekker).
Pair fast_two_sum(double a, double b) {
  double sum = a + b;
  return {sum, b - (sum - a)};
}

// Half to even, for |x| < 2^51.
double round_to_integer(double x) {
  constexpr double kShift = 0x1.8p52;
  return (x + kShift) - kShift;
}

// 2^k for -1022 <= k <= 1023.
double power_of_two(int k) { return std::bit_cast<double>(static_cast<uint64_t>(k + 1023) << 52); }

// The sum of coefficients[i] * x^i, by Horner's rule.
template <int N>
double polynomial(double x, const double (&coefficients)[N]) {
  double sum = coefficients[N - 1];
  for (int i = N - 2; i >= 0; --i) sum = sum * x + coefficients[i];
  return sum;
}

// e^(x + x_lo) = 2^k * (1 + fraction), the fraction within [-0.3, 0.42]. |x| < 1100, |x_lo| < 2^-40.
struct ReducedExp {
  int k;
  double fraction;
};

ReducedExp reduced_exp(double x, double x_lo) {
  // 1/2!, 1/3!, ... of the Taylor series; with |r| <= ln(2)/2 the next term is below 2^-57.
  static constexpr double kTaylor[] = {1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
                                       1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                                       1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
  double k = round_to_integer(x * kInvLn2);
  double hi = x - k * kLn2Hi;
  double lo = k * kLn2Lo - x_lo;
  double r = hi - lo;
  return {static_cast<int>(k), hi + (r * r * polynomial(r, kTaylor) - lo)};
}

double exp_of_sum(double x, double x_lo) {
  if (x != x) return x;
  if (x > 0x1.62e42fefa39efp+9) return kInfinity;
  if (x < -708.39) return 0;
  auto [k, fraction] = reduced_exp(x, x_lo);
  int half = k / 2;  // in two steps, since 2^1024 is no double
  return (1 + fraction) * power_of_two(half) * power_of_two(k - half);
}

// log x to about 2^-58 of itself, for normal finite x > 0.
Pair log_pair(double x) {
  // 2/3, 2/5, ... of 2 atanh(s) = 2s + 2/3 s^3 + ...; with |s| <= 0.1716 the next term is below 2^-65.
  static constexpr double kAtanh[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13,
                                      2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23};
  constexpr double kSqrt2 = 0x1.6a09e667f3bcdp+0;
  uint64_t bits = std::bit_cast<uint64_t>(x);
  int k = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xf'ffff'ffff'ffff) | 0x3ff0'0000'0000'0000);
  if (m > kSqrt2) {
    m *= 0.5;
    ++k;
  }
  // log m = 2 atanh(s), s = f / (2 + f), with s to twice the precision.
  double f = m - 1;
  Pair divisor = fast_two_sum(2, f);
  double s = f / divisor.hi;
  double s_lo = (std::fma(-s, divisor.hi, f) - s * divisor.lo) / divisor.hi;
  double s2 = s * s;
  double tail = s * s2 * polynomial(s2, kAtanh);
  Pair sum = two_sum(k * kLn2Hi, 2 * s);
  return fast_two_sum(sum.hi, sum.lo + (2 * s_lo + tail + k * kLn2Lo));
}

// x = quadrant * pi/2 + hi + lo, |hi| <= pi/4 (Cody and Waite). |x| <= 1e8.
struct Angle {
  int quadrant;  // modulo 4
  double hi, lo;
};

Angle reduce_angle(double x) {
  constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
  // pi/2 in three parts; the first two have 26 bits, so that n times them is exact up to n = 2^26.
  constexpr double kPart1 = 0x1.921fb50000000p+0;
  constexpr double kPart2 = 0x1.110b460000000p-26;
  constexpr double kPart3 = 0x1.1a62633145c07p-54;
  double n = round_to_integer(x * kTwoOverPi);
  Pair rest = two_sum(x - n * kPart1, -(n * kPart2));
  rest = fast_two_sum(rest.hi, rest.lo - n * kPart3);
  return {static_cast<int>(n) & 3, rest.hi, rest.lo};
}

// sin and cos of hi + lo within [-pi/4, pi/4], by Taylor to below 2^-58.
double sin_kernel(double hi, double lo) {
  static constexpr double kTaylor[] = {
      -1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
      -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
  double x2 = hi * hi;
  return hi + (hi * x2 * polynomial(x2, kTaylor) + lo * (1 - 0.5 * x2));
}

double cos_kernel(double hi, double lo) {
  static constexpr double kTaylor[] = {
      1.0 / 24,        -1.0 / 720,         1.0 / 40320,         -1.0 / 3628800,
      1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000};
  double x2 = hi * hi;
  Pair head = fast_two_sum(1, -0.5 * x2);
  return head.hi + (head.lo + (x2 * x2 * polynomial(x2, kTaylor) - hi * lo));
}

bool angle_in_range(double x) { return std::fabs(x) <= 1e8; }

}  // namespace

double exp(double x) { return exp_of_sum(x, 0); }

double log(double x) {
  if (std::fabs(x) < kMinNormal) return -kInfinity;
  if (!(x > 0)) return kNaN;
  if (x == kInfinity) return x;
  return log_pair(x).hi;
}

double pow(double base, double exponent) {
  if (exponent == 0) return 1;
  if (!(base >= kMinNormal) || base == kInfinity || exponent != exponent) return kNaN;
  auto [hi, lo] = log_pair(base);
  double product = exponent * hi;
  if (!(std::fabs(product) < 1000)) return product != product ? 1 : (product > 0 ? kInfinity : 0);
  return exp_of_sum(product, std::fma(exponent, hi, -product) + exponent * lo);
}

double sin(double x) {
  if (!angle_in_range(x)) return kNaN;
  if (std::fabs(x) < 0x1p-27) return x;
  auto [quadrant, hi, lo] = reduce_angle(x);
  double value = quadrant & 1 ? cos_kernel(hi, lo) : sin_kernel(hi, lo);
  return quadrant & 2 ? -value : value;
}

double cos(double x) {
  if (!angle_in_range(x)) return kNaN;
  auto [quadrant, hi, lo] = reduce_angle(x);
  double value = quadrant & 1 ? sin_kernel(hi, lo) : cos_kernel(hi, lo);
  return quadrant == 1 || quadrant == 2 ? -value : value;
}

double tanh(double x) {
  double magnitude = std::fabs(x);
  if (magnitude < 0x1p-27 || x != x) return x;
  double value = 1;
  if (magnitude < 22) {
    // tanh a = -t / (t + 2) with t = e^(-2a) - 1, which loses nothing near zero.
    auto [k, fraction] = reduced_exp(-2 * magnitude, 0);
    double scale = power_of_two(k);
    double t = scale * fraction + (scale - 1);
    value = -t / (t + 2);
  }
  return std::copysign(value, x);
}

}  // namespace tercet::math
