// How fast the linear kernels are, format by format and for any number of rows, against what the machine's
// memory and its multipliers allow.
#pragma once

#include <functional>
#include <vector>

#include "backend/cpu/kernels.h"
#include "base/result.h"
#include "tensor/dtype.h"

namespace tercet::bench {

struct KernelOptions {
  backend::Isa isa = backend::Isa::kScalar;
  int num_threads = 0;
  std::vector<DType> types;
  std::vector<int> rows;
  int inputs = 1536;
  int64_t weight_bytes = int64_t{192} << 20;  // in the file: more than caches hold
  int repetitions = 8;                        // enough for each choice of backend/cpu/prefetch_trial.h
};

// One linear layer of a type, with a number of rows. The least time of the repetitions counts.
struct KernelSpeed {
  DType type;
  int rows = 0;
  double seconds = 0;
  double weight_bytes = 0;    // as packed, read once
  double operations = 0;      // a multiply-add counts as two
  double read_bandwidth = 0;  // of the machine, bytes per second: the best of the repetitions
};

// The machine's integer multiply-adds per second, times two.
double peak_operations(backend::Isa isa, int num_threads);

// Calls `report` after each.
Status measure_kernels(const KernelOptions& options, const std::function<void(const KernelSpeed&)>& report);

}  // namespace tercet::bench
