// Elementary functions in double, the same bits on every machine: built from + - * / and fma alone, each
// correctly rounded by IEEE 754, in an order that the compiler may not change (-ffp-contract=off). A token
// may depend on them, so the C library's, which differ between versions, are not used.
//
// They do not depend on the flush-to-zero bits of the floating-point control register: an argument below
// 2^-1022 in magnitude counts as zero (sin and tanh return it), and exp and pow return zero for a result that
// small. Rounding must be to nearest even, the default. vec_math.h has the functions of floats.
//
// Pure functions; safe from any thread.
#pragma once

namespace tercet::math {

// e^x. Error below 1 ulp. Overflows to infinity; 0 where e^x < 2^-1022.
double exp(double x);

// Natural logarithm. Error below 0.55 ulp. -infinity at 0, NaN below.
double log(double x);

// base^exponent for base > 0. Relative error below 1e-15 (NaN for a base that is not positive, but x^0 = 1).
double pow(double base, double exponent);

// x in radians, |x| <= 1e8 (NaN beyond). Absolute error below 2.3e-16.
double sin(double x);
double cos(double x);

// Hyperbolic tangent. Error below 3 ulp.
double tanh(double x);

}  // namespace tercet::math
