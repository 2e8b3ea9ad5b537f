// How far ahead loops over weights, for few rows, ask memory for them: the first loops take the choices in
// turn, and the one that reads fastest stays. Processors differ too much for a rule: a Zen 4 is fastest
// without for one row, a Zen 5 with one distance, a Xeon with two. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

#include "backend/cpu/kernels.h"

namespace tercet::backend {

class PrefetchTrial {
 public:
  static constexpr Prefetch kChoices[] = {
      {}, {.near = 4096}, {.near = 8192}, {.near = 576, .far = 4608}, {.near = 2048, .far = 9216}};

  // For a loop that reads this many bytes of weights. Loops that read equally much are taken for the same
  // work, and settle by themselves.
  Prefetch choice(int64_t bytes) { return kChoices[works_[bytes].choice]; }
  // That loop ran, and took this long.
  void took(int64_t bytes, std::chrono::nanoseconds time);

 private:
  static constexpr int kNumChoices = std::size(kChoices);

  struct Work {
    int num_loops = 0;
    size_t choice = 0;
    std::vector<std::chrono::nanoseconds> times[kNumChoices];
  };

  std::map<int64_t, Work> works_;  // by bytes
};

}  // namespace tercet::backend
