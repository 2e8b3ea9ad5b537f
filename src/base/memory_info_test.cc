#include "base/memory_info.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace tercet {
namespace {

TEST(MemoryInfo, PeakFollowsWhatWasTouched) {
  constexpr size_t kBytes = 64 << 20;
  const int64_t before = peak_resident_memory();
  EXPECT_GT(before, 1 << 20);
  std::vector<char> memory(kBytes);
  std::memset(memory.data(), 1, memory.size());
  EXPECT_GT(peak_resident_memory(), std::max<int64_t>(before, kBytes));
}

TEST(MemoryInfo, SomeMemoryIsAvailable) { EXPECT_GT(available_memory(), 1 << 20); }

}  // namespace
}  // namespace tercet
