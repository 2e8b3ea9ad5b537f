#include "backend/cpu/cpu_weight.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/float16.h"
#include "quant/codec.h"

namespace tercet::backend {
namespace {

// How a tensor type is held: in a packed layout, or as floats.
struct Storage {
  const quant::PackedLayout* layout = nullptr;
  FloatType float_type = FloatType::kF32;

  int64_t panel_bytes(int64_t inputs) const {
    return layout != nullptr ? quant::panel_bytes(*layout, inputs) : float_panel_bytes(float_type, inputs);
  }
};

Result<Storage> storage_of(DType type, bool widen) {
  if (widen && quant::can_dequantize(type)) return Storage{};
  if (const auto* layout = quant::packed_layout(type)) return Storage{layout, FloatType::kF32};
  if (type == DType::kF32) return Storage{nullptr, FloatType::kF32};
  if (type == DType::kF16) return Storage{nullptr, FloatType::kF16};
  if (type == DType::kBF16) return Storage{nullptr, FloatType::kBF16};
  return Error{
      ErrorCode::kUnsupported,
      fmt::format(
          "weights of type {} cannot be computed yet; use F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 or "
          "Q2_K to Q6_K",
          dtype_name(type)),
      {}};
}

// Writes a row into its lane of a float panel.
void pack_float_row(FloatType type, DType source_type, const std::byte* row, int64_t inputs, int lane,
                    std::byte* panel) {
  if (type == FloatType::kF32) {
    std::vector<float> values(static_cast<size_t>(inputs));
    quant::dequantize_row(source_type, row, values.data(), inputs);
    for (int64_t k = 0; k < inputs; ++k)
      std::memcpy(panel + (k * 16 + lane) * 4, &values[static_cast<size_t>(k)], 4);
    return;
  }
  for (int64_t k = 0; k < inputs; ++k) {
    const int64_t at = type == FloatType::kF16 ? k * 16 + lane : (k / 2 * 16 + lane) * 2 + k % 2;
    std::memcpy(panel + at * 2, row + k * 2, 2);
  }
}

}  // namespace

Result<int64_t> CpuWeight::packed_bytes(DType type, int64_t outputs, int64_t inputs, bool widen) {
  TERCET_ASSIGN(const Storage storage, storage_of(type, widen));
  return quant::num_panels(outputs) * storage.panel_bytes(inputs);
}

Result<std::unique_ptr<Weight>> CpuWeight::pack(const WeightSource& source, bool widen, ThreadPool& threads,
                                                Arena& arena) {
  return pack_stack(
      1, [&](int) -> Result<WeightSource> { return source; }, widen, threads, arena);
}

Result<std::unique_ptr<Weight>> CpuWeight::pack_stack(int stack_size, const StackSource& source, bool widen,
                                                      ThreadPool& threads, Arena& arena) {
  auto weight = std::unique_ptr<CpuWeight>(new CpuWeight());
  weight->stack_size_ = stack_size;
  DType type{};
  for (int index = 0; index < stack_size; ++index) {
    TERCET_ASSIGN(const WeightSource matrix, source(index));
    if (index == 0) {
      const auto storage = storage_of(matrix.type, widen);
      if (!storage.ok()) return Error{storage.error().code, storage.error().message, matrix.name};
      type = matrix.type;
      weight->layout_ = storage->layout;
      weight->float_type_ = storage->float_type;
      weight->outputs_ = matrix.outputs;
      weight->inputs_ = matrix.inputs;
      weight->panel_stride_ = storage->panel_bytes(matrix.inputs);
      weight->bytes_ = stack_size * quant::num_panels(matrix.outputs) * weight->panel_stride_;
      TERCET_ASSIGN(weight->memory_, arena.allocate(weight->bytes_));
    }
    TERCET_CHECK(matrix.type == type && matrix.outputs == weight->outputs_ &&
                 matrix.inputs == weight->inputs_);
    weight->pack_matrix(matrix, index, threads);
  }
  return std::unique_ptr<Weight>(std::move(weight));
}

void CpuWeight::pack_matrix(const WeightSource& source, int index, ThreadPool& threads) {
  const int64_t row_bytes = dtype_row_bytes(source.type, source.inputs);
  TERCET_CHECK(source.row_order.empty() || static_cast<int64_t>(source.row_order.size()) == source.outputs);
  const int64_t last_row = source.row_order.empty()
                               ? source.outputs - 1
                               : *std::max_element(source.row_order.begin(), source.row_order.end());
  TERCET_CHECK(static_cast<int64_t>(source.data.size()) >= row_bytes * (last_row + 1));
  std::byte* panels = memory_.get() + index * quant::num_panels(outputs_) * panel_stride_;
  threads.parallel_for(quant::num_panels(outputs_), 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t panel = begin; panel < end; ++panel) {
      std::byte* out = panels + panel * panel_stride_;
      const std::byte* rows[quant::kPanelRows] = {};
      for (int lane = 0; lane < quant::kPanelRows; ++lane) {
        const int64_t row = panel * quant::kPanelRows + lane;
        if (row >= source.outputs) break;
        const int64_t from = source.row_order.empty() ? row : source.row_order[static_cast<size_t>(row)];
        rows[lane] = source.data.data() + from * row_bytes;
        if (layout_ == nullptr) pack_float_row(float_type_, source.type, rows[lane], inputs_, lane, out);
      }
      if (layout_ != nullptr) quant::pack_panel(source.type, rows, inputs_, out);
    }
  });
}

Result<std::unique_ptr<Weight>> CpuWeight::vector(const WeightSource& source, Arena& arena) {
  if (!quant::can_dequantize(source.type))
    return Error{ErrorCode::kUnsupported,
                 fmt::format("has type {}, expected a float type", dtype_name(source.type)), source.name};
  auto weight = std::unique_ptr<CpuWeight>(new CpuWeight());
  weight->outputs_ = 1;
  weight->inputs_ = source.inputs;
  weight->bytes_ = source.inputs * static_cast<int64_t>(sizeof(float));
  TERCET_ASSIGN(weight->memory_, arena.allocate(weight->bytes_));
  quant::dequantize_row(source.type, source.data.data(), reinterpret_cast<float*>(weight->memory_.get()),
                        source.inputs);
  return std::unique_ptr<Weight>(std::move(weight));
}

void CpuWeight::read_row(int64_t row, float* out) const {
  const std::byte* panel = memory_.get() + row / quant::kPanelRows * panel_stride_;
  const auto lane = static_cast<int>(row % quant::kPanelRows);
  if (layout_ != nullptr) {
    quant::unpack_row(*layout_, panel, inputs_, lane, out);
    return;
  }
  for (int64_t k = 0; k < inputs_; ++k) {
    if (float_type_ == FloatType::kF32) {
      std::memcpy(out + k, panel + (k * 16 + lane) * 4, 4);
      continue;
    }
    const bool half = float_type_ == FloatType::kF16;
    uint16_t bits;
    std::memcpy(&bits, panel + (half ? k * 16 + lane : (k / 2 * 16 + lane) * 2 + k % 2) * 2, 2);
    out[k] = half ? f16_to_f32(bits) : bf16_to_f32(bits);
  }
}

}  // namespace tercet::backend
