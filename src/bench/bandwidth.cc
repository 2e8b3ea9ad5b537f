#include "bench/bandwidth.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "base/thread_pool.h"

namespace tercet::bench {
namespace {

uint64_t read_all(const uint64_t* begin, const uint64_t* end) {
  uint64_t a = 0, b = 0, c = 0, d = 0;
  for (; begin + 8 <= end; begin += 8) {
    a ^= begin[0] ^ begin[4];
    b ^= begin[1] ^ begin[5];
    c ^= begin[2] ^ begin[6];
    d ^= begin[3] ^ begin[7];
  }
  return a ^ b ^ c ^ d;
}

}  // namespace

Result<BandwidthProbe> BandwidthProbe::create(int num_threads, int64_t bytes) {
  TERCET_ASSIGN(AlignedBuffer memory, AlignedBuffer::allocate(bytes));
  // Pages that were never written are all the one page of zeros.
  std::memset(memory.data(), 1, static_cast<size_t>(bytes));
  return BandwidthProbe(num_threads, std::move(memory));
}

double BandwidthProbe::measure() const {
  const auto* words = reinterpret_cast<const uint64_t*>(memory_.data());
  const std::vector<int> cpus = allowed_cpus();
  const size_t part =
      static_cast<size_t>(memory_.bytes()) / sizeof(uint64_t) / static_cast<size_t>(num_threads_);
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::atomic<uint64_t> sink{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < num_threads_; ++t) {
    threads.emplace_back([&, t] {
      if (static_cast<size_t>(num_threads_) <= cpus.size()) pin_to(cpus[static_cast<size_t>(t)]);
      const uint64_t* begin = words + static_cast<size_t>(t) * part;
      ready.fetch_add(1);
      while (!go.load()) std::this_thread::yield();
      sink.fetch_xor(read_all(begin, begin + part));
    });
  }
  while (ready.load() < num_threads_) std::this_thread::yield();
  const auto start = std::chrono::steady_clock::now();
  go.store(true);
  for (std::thread& thread : threads) thread.join();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return static_cast<double>(part * 8) * num_threads_ / seconds;
}

}  // namespace tercet::bench
