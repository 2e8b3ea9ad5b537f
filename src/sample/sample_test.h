// Values that tests of sampling share.
#pragma once

#include <limits>

namespace tercet::sample {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

}  // namespace tercet::sample
