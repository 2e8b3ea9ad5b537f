// Reductions over one row of logits, [vocab] on the host, in the order that docs/sampling.md defines: sixteen
// lanes, lane j takes the tokens with id % 16 == j in ascending order, then lanes j and j + 8 are added, j
// and j + 4, j and j + 2, and the last two. A removed token, whose logit is -infinity, adds nothing.
//
// Pure functions; safe from any thread.
#pragma once

#include <array>
#include <span>

#include "core/types.h"

namespace tercet::sample {

inline constexpr int kLanes = 16;

// Adds the lanes in their fixed tree.
double tree_sum(std::array<double, kLanes> lanes);

// A token's unnormalised probability exp(logit - max), by vec::exp: 0 below -87.33, where floats would soon
// be subnormal, and so for a removed token.
float softmax_weight(float logit, float max);

// The sum of the weights of a row whose largest element is `max`.
double softmax_sum(std::span<const float> logits, float max);

struct RowScan {
  core::TokenId best = 0;   // the lowest id of the largest value
  float max = 0;            // that value
  bool all_finite = false;  // no NaN and no infinity
};

// One pass over a row that is not empty. With a NaN in it `best` and `max` mean nothing.
RowScan scan_row(std::span<const float> row);

}  // namespace tercet::sample
