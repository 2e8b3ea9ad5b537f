#include "backend/cpu/prefetch_trial.h"

#include <algorithm>

namespace tercet::backend {
namespace {

// Long loops are few, and what holds up a part of one shows less.
int loops_per_choice(int64_t bytes) { return bytes < 16 << 20 ? 12 : 3; }

// Some loops are held up by what else the machine does.
std::chrono::nanoseconds median(std::vector<std::chrono::nanoseconds> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace

void PrefetchTrial::took(int64_t bytes, std::chrono::nanoseconds time) {
  Work& work = works_[bytes];
  const int all_loops = kNumChoices * loops_per_choice(bytes);
  if (work.num_loops == all_loops) return;
  work.times[work.choice].push_back(time);
  ++work.num_loops;
  work.choice = static_cast<size_t>(work.num_loops % kNumChoices);
  if (work.num_loops < all_loops) return;
  std::chrono::nanoseconds medians[kNumChoices];
  std::transform(work.times, work.times + kNumChoices, medians, median);
  work.choice = static_cast<size_t>(std::min_element(medians, medians + kNumChoices) - medians);
}

}  // namespace tercet::backend
