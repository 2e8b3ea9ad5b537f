#include "base/thread_pool.h"

#include <sched.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>

#include "base/check.h"

namespace tercet {
namespace {

// About 20 microseconds: longer than the gap between two operators of a step, shorter than a scheduler's
// slice.
constexpr int kSpins = 2000;

// A ticket names a loop and the next piece of a share of it; piece kClosed: none is left.
constexpr uint32_t kClosed = 0xFFFFFFFF;
constexpr uint64_t make_ticket(uint32_t generation, uint32_t piece) {
  return uint64_t{generation} << 32 | piece;
}
constexpr uint32_t generation_of(uint64_t ticket) { return static_cast<uint32_t>(ticket >> 32); }
constexpr uint32_t piece_of(uint64_t ticket) { return static_cast<uint32_t>(ticket); }

void pause_cpu() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// CPUs granted by the cgroup's quota (v2), or a large number.
int quota_cpus() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 1 << 20;
  return std::max(1, static_cast<int>(std::ceil(std::atof(quota.c_str()) / period)));
}

}  // namespace

#if defined(__x86_64__)
// Bits 15 (flush to zero), 12..7 (exceptions masked), 6 (denormals are zero); rounding to nearest.
FloatEnvironment::FloatEnvironment() : saved_(_mm_getcsr()) { _mm_setcsr(0x9FC0); }
FloatEnvironment::~FloatEnvironment() { _mm_setcsr(saved_); }
#else
FloatEnvironment::FloatEnvironment() : saved_(0) {}
FloatEnvironment::~FloatEnvironment() = default;
#endif

int usable_cpus() { return std::max(1, std::min(static_cast<int>(allowed_cpus().size()), quota_cpus())); }

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

void pin_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

ThreadPool::ThreadPool(int num_threads, bool pins) : shares_(static_cast<size_t>(std::max(num_threads, 1))) {
  TERCET_CHECK(num_threads >= 1);
  for (Share& share : shares_) share.ticket.store(make_ticket(0, kClosed));
  const std::vector<int> cpus = pins ? allowed_cpus() : std::vector<int>();
  workers_.reserve(static_cast<size_t>(num_threads - 1));
  for (int member = 1; member < num_threads; ++member) {
    const int cpu = cpus.size() >= static_cast<size_t>(num_threads) ? cpus[static_cast<size_t>(member)] : -1;
    workers_.emplace_back([this, member, cpu] {
      if (cpu >= 0) pin_to(cpu);
      worker(member);
    });
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_.store(true);
  }
  wake_.notify_all();
  for (auto& thread : workers_) thread.join();
}

void ThreadPool::parallel_for(int64_t count, int64_t grain, const Body& body) {
  TERCET_CHECK(grain >= 1);
  if (count <= 0) return;
  if (workers_.empty() || count <= grain) {
    const FloatEnvironment environment;
    for (int64_t begin = 0; begin < count; begin += grain) body(begin, std::min(begin + grain, count), 0);
    return;
  }
  // Between loops all shares are closed, so that no piece can be claimed while the loop is set up.
  loop_.body.store(&body);
  loop_.count.store(count);
  loop_.grain.store(grain);
  const int64_t pieces = num_pieces();
  TERCET_CHECK(pieces < kClosed);
  pieces_done_.store(0);
  const uint32_t generation = generation_of(shares_[0].ticket.load()) + 1;
  for (size_t i = 0; i < shares_.size(); ++i) {
    const uint32_t first = first_piece(pieces, i);
    const bool is_empty = first == first_piece(pieces, i + 1);
    shares_[i].ticket.store(make_ticket(generation, is_empty ? kClosed : first));
  }
  if (sleepers_.load() > 0) {
    // The lock orders this wake-up after a worker's decision to sleep.
    { const std::lock_guard lock(mutex_); }
    wake_.notify_all();
  }
  run_pieces(0, generation);
  for (int spins = 0; pieces_done_.load() < pieces; ++spins) {
    pause_cpu();
    if (spins > kSpins) std::this_thread::yield();
  }
}

int64_t ThreadPool::num_pieces() const {
  const int64_t grain = loop_.grain.load();
  return (loop_.count.load() + grain - 1) / grain;
}

uint32_t ThreadPool::first_piece(int64_t num_pieces, size_t share) const {
  const auto num_shares = static_cast<int64_t>(shares_.size());
  return static_cast<uint32_t>((num_pieces * static_cast<int64_t>(share) + num_shares - 1) / num_shares);
}

// Runs a piece of a share, if one of that loop is left.
bool ThreadPool::run_piece(size_t share, int member, uint32_t generation) {
  std::atomic<uint64_t>& next = shares_[share].ticket;
  uint64_t ticket = next.load();
  for (;;) {
    const uint32_t piece = piece_of(ticket);
    if (piece == kClosed || generation_of(ticket) != generation) return false;
    const Body* body = loop_.body.load();
    const int64_t count = loop_.count.load();
    const int64_t grain = loop_.grain.load();
    const bool is_last = piece + 1 == first_piece(num_pieces(), share + 1);
    const uint64_t claimed = is_last ? make_ticket(generation, kClosed) : ticket + 1;
    if (!next.compare_exchange_weak(ticket, claimed)) continue;
    const int64_t begin = piece * grain;
    (*body)(begin, std::min(begin + grain, count), member);
    pieces_done_.fetch_add(1);
    return true;
  }
}

// A member that is late does not go on with the next loop, which it has to begin with its own share.
void ThreadPool::run_pieces(int member, uint32_t generation) {
  const FloatEnvironment environment;
  for (size_t i = 0; i < shares_.size(); ++i) {
    const size_t share = (static_cast<size_t>(member) + i) % shares_.size();
    while (run_piece(share, member, generation)) {
    }
  }
}

bool ThreadPool::wait_for_loop(const Share& share, uint32_t seen) {
  const auto may_go = [&] { return stopping_.load() || generation_of(share.ticket.load()) != seen; };
  for (int spins = 0; spins < kSpins; ++spins) {
    if (may_go()) return !stopping_.load();
    pause_cpu();
  }
  std::unique_lock lock(mutex_);
  sleepers_.fetch_add(1);
  wake_.wait(lock, may_go);
  sleepers_.fetch_sub(1);
  return !stopping_.load();
}

void ThreadPool::worker(int member) {
  const Share& share = shares_[static_cast<size_t>(member)];
  uint32_t seen = 0;
  while (wait_for_loop(share, seen)) {
    seen = generation_of(share.ticket.load());
    run_pieces(member, seen);
  }
}

}  // namespace tercet
