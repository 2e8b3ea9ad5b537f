// Arena: hands out pieces of large chunks of memory, so that tensors which alone would begin and end within
// large pages share them. A piece keeps its chunk alive and may outlive the arena. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "tensor/aligned_buffer.h"

namespace tercet {

class Arena {
 public:
  // Zeroed, aligned to 64 bytes.
  Result<std::shared_ptr<std::byte>> allocate(int64_t bytes);

 private:
  std::shared_ptr<AlignedBuffer> chunk_;
  int64_t used_ = 0;  // of chunk_
};

}  // namespace tercet
