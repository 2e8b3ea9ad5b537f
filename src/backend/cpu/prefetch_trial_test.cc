#include "backend/cpu/prefetch_trial.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace tercet::backend {
namespace {

using std::chrono::nanoseconds;

// Runs a thousand loops over weights of these sizes in turn, each as long as `time` says.
void run(PrefetchTrial& trial, const std::vector<int64_t>& sizes,
         const std::function<int(int loop, int64_t bytes, Prefetch prefetch)>& time) {
  for (int i = 0; i < 1000; ++i) {
    const int64_t bytes = sizes[static_cast<size_t>(i) % sizes.size()];
    trial.took(bytes, nanoseconds(time(i, bytes, trial.choice(bytes))));
  }
}

TEST(PrefetchTrial, TakesTheChoicesInTurn) {
  PrefetchTrial trial;
  for (const Prefetch& next : PrefetchTrial::kChoices) {
    EXPECT_EQ(trial.choice(1000), next);
    trial.took(1000, nanoseconds(1));
  }
  EXPECT_EQ(trial.choice(1000), PrefetchTrial::kChoices[0]);
}

TEST(PrefetchTrial, KeepsTheChoiceThatReadsFastest) {
  for (const Prefetch& fastest : PrefetchTrial::kChoices) {
    PrefetchTrial trial;
    run(trial, {1000}, [&](int, int64_t, Prefetch p) { return p == fastest ? 40'000 : 50'000; });
    EXPECT_EQ(trial.choice(1000), fastest);
    trial.took(1000, nanoseconds(1'000'000));
    EXPECT_EQ(trial.choice(1000), fastest);
  }
}

TEST(PrefetchTrial, SettlesForEachSizeByItself) {
  const auto fastest = [](int64_t bytes) { return PrefetchTrial::kChoices[bytes / 1000]; };
  const std::vector<int64_t> sizes = {1000, 3000, 0};
  PrefetchTrial trial;
  run(trial, sizes, [&](int, int64_t bytes, Prefetch p) {
    return static_cast<int>(bytes) * 100 + (p == fastest(bytes) ? 95 : 100);
  });
  for (int64_t bytes : sizes) EXPECT_EQ(trial.choice(bytes), fastest(bytes)) << bytes;
}

TEST(PrefetchTrial, IsShortForLongLoops) {
  PrefetchTrial trial;
  int loops = 0;
  for (; loops < 1000 && trial.choice(100 << 20) == PrefetchTrial::kChoices[loops % 5]; ++loops)
    trial.took(100 << 20, nanoseconds(loops % 5 == 2 ? 40'000'000 : 50'000'000));
  EXPECT_EQ(loops, 15);
  EXPECT_EQ(trial.choice(100 << 20), PrefetchTrial::kChoices[2]);
}

TEST(PrefetchTrial, IsNotMisledByLoopsThatWereHeldUp) {
  const Prefetch fastest = PrefetchTrial::kChoices[1];
  PrefetchTrial trial;
  run(trial, {1000}, [&](int loop, int64_t, Prefetch p) {
    return p != fastest ? 50'000 : loop % 11 < 4 ? 900'000 : 40'000;
  });
  EXPECT_EQ(trial.choice(1000), fastest);
}

}  // namespace
}  // namespace tercet::backend
