// Rotary position embedding (Su et al. 2021) as data: the frequencies of each pair, with whatever scaling a
// family applies to them already applied.
#pragma once

#include <vector>

namespace tercet::model {

// Rotates pairs (i, i + dims / 2) of a head's first `dims` values: angle = position * frequencies[i].
struct RopeSpec {
  int dims = 0;                     // even
  std::vector<double> frequencies;  // [dims / 2]
  // longrope (Ding et al. 2024): what sequences use that may become longer than long_after; else empty.
  std::vector<double> long_frequencies;
  int long_after = 0;
  double magnitude = 1;  // multiplies cosines and sines
};

// base^(-2i / dims).
std::vector<double> rope_frequencies(int dims, double base);

// YaRN (Peng et al. 2023): pairs that turn more than beta_fast times in the original context keep their
// frequency, those that turn less than beta_slow times are slowed down by `factor`, those between are mixed.
struct Yarn {
  double factor = 1;
  double original_context = 0;
  double beta_fast = 32;
  double beta_slow = 1;
  bool truncate = true;  // the limits between the three are rounded to whole pairs
};
void apply_yarn(const Yarn& yarn, double base, std::vector<double>& frequencies);

// 0.1 weight ln(factor) + 1.
double yarn_magnitude(double factor, double weight);

}  // namespace tercet::model
