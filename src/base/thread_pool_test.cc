#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <chrono>

namespace tercet {
namespace {

TEST(ThreadPool, EveryItemRunsOnce) {
  for (int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    for (int64_t count : {0, 1, 5, 64, 1000}) {
      for (int64_t grain : {1, 3, 64}) {
        std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
        pool.parallel_for(count, grain, [&](int64_t begin, int64_t end, int member) {
          EXPECT_LT(member, threads);
          EXPECT_LE(end - begin, std::max<int64_t>(grain, count));
          for (int64_t i = begin; i < end; ++i) hits[static_cast<size_t>(i)].fetch_add(1);
        });
        for (auto& hit : hits) EXPECT_EQ(hit.load(), 1);
      }
    }
  }
}

TEST(ThreadPool, PinnedWorkersHaveACpuEach) {
  const std::vector<int> cpus = allowed_cpus();
  const int num_threads = static_cast<int>(std::min<size_t>(cpus.size(), 4));
  ThreadPool pool(num_threads, true);
  std::atomic<int> seen{0};  // every member comes once
  pool.parallel_for(num_threads, 1, [&](int64_t, int64_t, int member) {
    const auto expected = member == 0 ? cpus : std::vector<int>{cpus[static_cast<size_t>(member)]};
    EXPECT_EQ(allowed_cpus(), expected);
    seen.fetch_add(1);
    while (seen.load() < num_threads) std::this_thread::yield();
  });
}

TEST(ThreadPool, PinsNothingWhereThereAreFewerCpusThanMembers) {
  const std::vector<int> cpus = allowed_cpus();
  const int num_threads = static_cast<int>(cpus.size()) + 1;
  ThreadPool pool(num_threads, true);
  std::atomic<int> seen{0};
  pool.parallel_for(num_threads, 1, [&](int64_t, int64_t, int) {
    EXPECT_EQ(allowed_cpus(), cpus);
    seen.fetch_add(1);
    while (seen.load() < num_threads) std::this_thread::yield();
  });
}

TEST(ThreadPool, ManyLoopsWithSleepsBetween) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  for (int loop = 0; loop < 300; ++loop) {
    if (loop % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    pool.parallel_for(100, 7, [&](int64_t begin, int64_t end, int) { sum += end - begin; });
  }
  EXPECT_EQ(sum.load(), 300 * 100);
}

// What a member reads is contiguous, and the same part in every loop over the same memory.
TEST(ThreadPool, AMemberBeginsWithItsShare) {
  constexpr int kMembers = 3, kPieces = 30;
  ThreadPool pool(kMembers);
  for (int loop = 0; loop < 5; ++loop) {
    std::atomic<int> begun{0};
    int64_t first[kMembers] = {-1, -1, -1};  // that each member runs
    pool.parallel_for(kPieces * 4, 4, [&](int64_t begin, int64_t, int member) {
      if (first[member] >= 0) return;
      first[member] = begin / 4;
      begun.fetch_add(1);
      while (begun.load() < kMembers) std::this_thread::yield();
    });
    for (int member = 0; member < kMembers; ++member) EXPECT_EQ(first[member], member * kPieces / kMembers);
  }
}

// A member that stalls holds up the piece it took and nothing else.
TEST(ThreadPool, OneStalledMemberDoesNotHoldTheOthersWork) {
  ThreadPool pool(2);
  std::atomic<int> done_by_other{0};
  std::atomic<int> stalled{-1};
  pool.parallel_for(50, 1, [&](int64_t begin, int64_t, int member) {
    if (begin == 0) {
      stalled = member;
      while (done_by_other.load() < 49) std::this_thread::yield();
    } else {
      done_by_other.fetch_add(1);
    }
  });
  EXPECT_EQ(done_by_other.load(), 49);
}

TEST(ThreadPool, TwoPoolsRunAtOnce) {
  std::atomic<int64_t> sum{0};
  auto drive = [&] {
    ThreadPool pool(2);
    for (int loop = 0; loop < 100; ++loop)
      pool.parallel_for(64, 4, [&](int64_t begin, int64_t end, int) { sum += end - begin; });
  };
  std::thread other(drive);
  drive();
  other.join();
  EXPECT_EQ(sum.load(), 2 * 100 * 64);
}

TEST(ThreadPool, MembersFlushDenormalsAndTheCallerIsRestored) {
  ThreadPool pool(2);
  volatile float tiny = FLT_MIN;
  std::atomic<int> flushed{0};
  pool.parallel_for(8, 1, [&](int64_t, int64_t, int) {
    if (tiny * 0.5f == 0.0f) flushed.fetch_add(1);
  });
  EXPECT_EQ(flushed.load(), 8);
  EXPECT_NE(tiny * 0.5f, 0.0f);
}

TEST(ThreadPool, EndsWhileWorkersAreLateForALoop) {
  std::atomic<int64_t> sum{0};
  for (int i = 0; i < 1000; ++i) {
    ThreadPool pool(8);
    pool.parallel_for(2, 1, [&](int64_t begin, int64_t, int) { sum += begin; });
  }
  EXPECT_EQ(sum, 1000);
}

}  // namespace
}  // namespace tercet
