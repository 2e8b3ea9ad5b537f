// Looks for weights that are not numbers: NaN and Inf after dequantizing, which quantizers leave behind when
// their input was broken, and which make a model answer nonsense.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/inspected_file.h"

namespace tercet::app {

struct NonFiniteTensor {
  std::string name;
  int64_t nans = 0;
  int64_t infs = 0;
  int64_t rows = 0;                 // that hold one
  std::vector<int64_t> first_rows;  // their indices, ten at most; dimensions after the first counted as one
};

struct WeightCheck {
  std::vector<NonFiniteTensor> bad;        // in file order
  std::vector<std::string> skipped_types;  // names of types in the file whose values cannot be read
  int64_t checked_tensors = 0;
};

// Reads every tensor and lets go of its pages. `progress` is told the bytes read so far, now and then.
WeightCheck check_weights(const InspectedFile& file, const std::function<void(uint64_t)>& progress = {});

// For people: "blk.0.ffn_up.weight: 8 NaN and 0 Inf in 1 row: 3".
std::string describe(const NonFiniteTensor& tensor);

}  // namespace tercet::app
