#include "tensor/aligned_buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>

namespace tercet {
namespace {

// Below this, large pages would waste more than they save.
constexpr int64_t kLargePage = 2 << 20;

}  // namespace

Result<AlignedBuffer> AlignedBuffer::allocate(int64_t bytes) {
  if (bytes == 0) return AlignedBuffer();
  void* data =
      ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    return Error{ErrorCode::kExhausted, fmt::format("cannot allocate {} MiB of memory", bytes >> 20), {}};
  if (bytes >= kLargePage) ::madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return AlignedBuffer(static_cast<std::byte*>(data), bytes);
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ != nullptr) ::munmap(data_, static_cast<size_t>(bytes_));
}

}  // namespace tercet
