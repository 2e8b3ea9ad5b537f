#include "model/rope.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"

namespace tercet::model {

std::vector<double> rope_frequencies(int dims, double base) {
  std::vector<double> frequencies;
  for (int i = 0; i < dims / 2; ++i) frequencies.push_back(math::pow(base, -2.0 * i / dims));
  return frequencies;
}

void apply_yarn(const Yarn& yarn, double base, std::vector<double>& frequencies) {
  constexpr double kTwoPi = 6.283185307179586;
  const double dims = 2.0 * static_cast<double>(frequencies.size());
  // The pair, as a real number, that turns `beta` times in the original context.
  const auto pair_of = [&](double beta) {
    return dims * math::log(yarn.original_context / (kTwoPi * beta)) / (2 * math::log(base));
  };
  double low = pair_of(yarn.beta_fast), high = pair_of(yarn.beta_slow);
  if (yarn.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, dims - 1);
  // A step where both limits meet.
  if (low == high) high += 0.001;
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] = frequencies[i] * (1 - ramp) + frequencies[i] / yarn.factor * ramp;
  }
}

double yarn_magnitude(double factor, double weight) { return 0.1 * weight * math::log(factor) + 1; }

}  // namespace tercet::model
