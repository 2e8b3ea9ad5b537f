// Weights of the CPU device: panels of 16 output rows, packed codes or floats; or a plain vector.
#pragma once

#include <memory>
#include <optional>

#include "backend/cpu/kernels.h"
#include "backend/device.h"
#include "tensor/arena.h"

namespace tercet::backend {

class CpuWeight final : public Weight {
 public:
  // `widen`: quantized and half types become F32.
  static Result<std::unique_ptr<Weight>> pack(const WeightSource& source, bool widen, ThreadPool& threads,
                                              Arena& arena);
  static Result<std::unique_ptr<Weight>> pack_stack(int stack_size, const StackSource& source, bool widen,
                                                    ThreadPool& threads, Arena& arena);
  static Result<std::unique_ptr<Weight>> vector(const WeightSource& source, Arena& arena);
  static Result<int64_t> packed_bytes(DType type, int64_t outputs, int64_t inputs, bool widen);

  int stack_size() const override { return stack_size_; }
  int64_t outputs() const override { return outputs_; }
  int64_t inputs() const override { return inputs_; }
  int64_t bytes() const override { return bytes_; }

  // nullptr for float weights.
  const quant::PackedLayout* layout() const { return layout_; }
  FloatType float_type() const { return float_type_; }
  // Of one matrix of the stack.
  const std::byte* panels(int index = 0) const {
    return memory_.get() + index * quant::num_panels(outputs_) * panel_stride_;
  }
  int64_t panel_stride() const { return panel_stride_; }
  // The values of a vector.
  const float* values() const { return reinterpret_cast<const float*>(memory_.get()); }
  // Writes row `row` as float32 into out[inputs].
  void read_row(int64_t row, float* out) const;

 private:
  CpuWeight() = default;
  void pack_matrix(const WeightSource& source, int index, ThreadPool& threads);

  std::shared_ptr<std::byte> memory_;
  int64_t bytes_ = 0;
  const quant::PackedLayout* layout_ = nullptr;
  FloatType float_type_ = FloatType::kF32;
  int stack_size_ = 1;
  int64_t outputs_ = 0;
  int64_t inputs_ = 0;
  int64_t panel_stride_ = 0;
};

}  // namespace tercet::backend
