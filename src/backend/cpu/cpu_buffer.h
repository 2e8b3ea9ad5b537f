// Memory of the CPU device that grows as views of it are asked for, in large pages where it is large. A view
// is valid until a larger one is asked for; its contents are what was there.
#pragma once

#include "backend/device.h"
#include "base/check.h"
#include "tensor/aligned_buffer.h"

namespace tercet::backend {

class CpuBuffer final : public Buffer {
 public:
  Matrix view(int64_t rows, int64_t cols) override {
    const int64_t bytes = rows * cols * static_cast<int64_t>(sizeof(float));
    if (bytes > memory_.bytes()) {
      memory_ = AlignedBuffer();
      auto grown = AlignedBuffer::allocate(bytes);
      TERCET_CHECK(grown.ok());
      memory_ = *std::move(grown);
    }
    return {reinterpret_cast<float*>(memory_.data()), rows, cols};
  }

 private:
  AlignedBuffer memory_;
};

}  // namespace tercet::backend
