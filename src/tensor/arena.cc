#include "tensor/arena.h"

#include <algorithm>

namespace tercet {
namespace {

// Pages that nobody touches take no memory, so only addresses are wasted at a chunk's end.
constexpr int64_t kChunkBytes = 256 << 20;
constexpr int64_t kAlignment = 64;

}  // namespace

Result<std::shared_ptr<std::byte>> Arena::allocate(int64_t bytes) {
  if (chunk_ == nullptr || bytes > chunk_->bytes() - used_) {
    TERCET_ASSIGN(AlignedBuffer chunk, AlignedBuffer::allocate(std::max(kChunkBytes, bytes)));
    chunk_ = std::make_shared<AlignedBuffer>(std::move(chunk));
    used_ = 0;
  }
  std::shared_ptr<std::byte> piece(chunk_, chunk_->data() + used_);
  used_ = std::min((used_ + bytes + kAlignment - 1) / kAlignment * kAlignment, chunk_->bytes());
  return piece;
}

}  // namespace tercet
