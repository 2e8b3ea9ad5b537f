// `tercet inspect MODEL`: what a model's files hold and what they will cost to run.
#pragma once

#include <ostream>
#include <string>

#include "base/result.h"

namespace tercet::app {

struct InspectOptions {
  std::string path;
  bool check = false;  // read all weights and flag NaN and Inf
  bool json = false;   // one JSON object instead of text; long arrays and strings whole
};

// Prints metadata, tensors, totals per type, bits per weight and memory needed. An error where the file
// cannot be read, or (kCorrupt, after everything is printed) where the check found a weight that is not a
// number.
Status inspect(const InspectOptions& options, std::ostream& out);

}  // namespace tercet::app
