// ThreadPool: a fixed team that runs one parallel loop at a time. Loops are cut into small pieces. Each
// member takes those of its share, a run of neighbours, so that what it reads is contiguous and is the same
// part in every loop over the same memory; then it helps others with theirs. A loop ends when its pieces are
// done: a member whose core was taken by a neighbour holds up the piece it had begun, or nothing. Workers
// spin briefly for the next loop and then sleep. Every member computes under `FloatEnvironment`.
//
// A pool is driven by one thread at a time (the caller is member 0); several pools may run at once.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tercet {

// Sets the floating-point control register that the arithmetic is defined under (round to nearest even,
// denormals are zero, flush to zero) and restores the previous one when it goes.
class FloatEnvironment {
 public:
  FloatEnvironment();
  ~FloatEnvironment();
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  unsigned saved_;
};

// CPUs this process may use: the scheduler's affinity mask bounded by the cgroup's quota, at least 1.
int usable_cpus();
// The CPUs of the affinity mask, in order.
std::vector<int> allowed_cpus();
// The calling thread runs on this CPU only, from now on.
void pin_to(int cpu);

class ThreadPool {
 public:
  // `num_threads` members, the calling thread included; at least 1. With `pins` every worker runs on a CPU of
  // its own and leaves the first one to the caller, unless there are fewer CPUs than members.
  explicit ThreadPool(int num_threads, bool pins = false);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(begin, end, member) for pieces of at most `grain` items that cover [0, count) once; returns
  // when all are done. `member` is in [0, num_threads()). The body must not throw and must not use this pool.
  using Body = std::function<void(int64_t begin, int64_t end, int member)>;
  void parallel_for(int64_t count, int64_t grain, const Body& body);

 private:
  // The loop in progress. Fields are atomic because a late worker may read them while the next loop is being
  // set up; what it read counts only if its claim on a share's ticket then succeeds.
  struct Loop {
    std::atomic<const Body*> body{nullptr};
    std::atomic<int64_t> count{0};
    std::atomic<int64_t> grain{1};
  };
  // The pieces of one member. On a cache line of its own, since its member spins on it.
  struct alignas(64) Share {
    std::atomic<uint64_t> ticket{0};  // generation of the loop << 32 | next piece
  };
  int64_t num_pieces() const;
  uint32_t first_piece(int64_t num_pieces, size_t share) const;
  void worker(int member);
  void run_pieces(int member, uint32_t generation);
  bool run_piece(size_t share, int member, uint32_t generation);
  bool wait_for_loop(const Share& share, uint32_t seen);

  std::vector<std::thread> workers_;
  Loop loop_;
  std::vector<Share> shares_;                        // [num_threads]
  alignas(64) std::atomic<int64_t> pieces_done_{0};  // of the current loop
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
};

}  // namespace tercet
