// The choice of experts, in plain code: the same on every instruction set.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/device.h"

namespace tercet::backend {

// Copies of rows, grouped by the matrix that each is for. Copy c is of row row_of[c]; matrix m's copies are
// [starts[m], starts[m + 1]), in ascending order of their rows.
struct CpuRoutes final : Routes {
  int used = 0;                 // copies of each row
  std::vector<int32_t> starts;  // [matrices + 1]
  std::vector<int32_t> row_of;  // [rows * used]
  std::vector<int32_t> copies;  // [rows, used]: a row's copies in ascending order of their matrices
  std::vector<float> weights;   // [rows, used]: theirs
};

// Fills `routes` from the matrices [rows, used], ascending in each row, and routes.weights, which is there.
void group_by_matrix(const std::vector<int32_t>& matrices, int num_matrices, int used, CpuRoutes& routes);

// One row's experts, ascending, and their weights: [spec.num_used] each. `correction` is [num_experts] or
// none. False when a logit is not finite; the experts are valid all the same.
bool choose_experts(const float* logits, const float* correction, const RouterSpec& spec, int32_t* experts,
                    float* weights);

}  // namespace tercet::backend
