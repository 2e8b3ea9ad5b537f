// The machine's read bandwidth: what bounds the generation of tokens.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "tensor/aligned_buffer.h"

namespace tercet::bench {

// Memory that threads read in turn to measure how fast they can. One thread drives it.
class BandwidthProbe {
 public:
  // `num_threads` threads, each pinned to a CPU of its own where there are enough, each with a part of
  // `bytes` in large pages where the system has them, as weights are.
  static Result<BandwidthProbe> create(int num_threads, int64_t bytes = int64_t{512} << 20);

  // Bytes per second, one sequential stream per thread, over the whole memory once.
  double measure() const;

 private:
  BandwidthProbe(int num_threads, AlignedBuffer memory)
      : num_threads_(num_threads), memory_(std::move(memory)) {}
  int num_threads_;
  AlignedBuffer memory_;
};

}  // namespace tercet::bench
