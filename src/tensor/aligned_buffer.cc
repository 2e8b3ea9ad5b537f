#include "tensor/aligned_buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>

namespace tercet {
namespace {

// Of what the kernel maps as one page where it may (transparent large pages).
constexpr int64_t kLargePage = 2 << 20;

std::byte* map(int64_t bytes) {
  void* data =
      ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
}

void unmap(std::byte* data, int64_t bytes) {
  if (bytes > 0) ::munmap(data, static_cast<size_t>(bytes));
}

}  // namespace

Result<AlignedBuffer> AlignedBuffer::allocate(int64_t bytes) {
  if (bytes == 0) return AlignedBuffer();
  // A large page begins at a multiple of its size, which mmap does not promise: map one more and cut the
  // ends.
  const int64_t slack = bytes >= kLargePage ? kLargePage : 0;
  std::byte* mapped = bytes <= INT64_MAX - slack ? map(bytes + slack) : nullptr;
  if (mapped == nullptr)
    return Error{ErrorCode::kExhausted, fmt::format("cannot allocate {} MiB of memory", bytes >> 20), {}};
  if (slack == 0) return AlignedBuffer(mapped, bytes);
  constexpr int64_t kPage = 4096;
  const int64_t before = -reinterpret_cast<intptr_t>(mapped) & (kLargePage - 1);
  const int64_t used = (bytes + kPage - 1) / kPage * kPage;
  unmap(mapped, before);
  unmap(mapped + before + used, slack - before);
  ::madvise(mapped + before, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return AlignedBuffer(mapped + before, bytes);
}

AlignedBuffer::~AlignedBuffer() { unmap(data_, bytes_); }

}  // namespace tercet
