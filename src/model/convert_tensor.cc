#include "model/convert_tensor.h"

#include <fmt/format.h>

#include <algorithm>

#include "quant/codec.h"
#include "quant/encode.h"

namespace tercet::model {
namespace {

constexpr int64_t kPieceElements = int64_t{1} << 20;

}  // namespace

Status for_each_rows(const TensorSource& source, const TensorInfo& tensor, int64_t expert,
                     const std::function<Status(int64_t row, std::span<const float> values)>& visit) {
  if (!quant::can_dequantize(tensor.type))
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("the tensor {} is {}, which holds no weights", tensor.name, dtype_name(tensor.type)),
        source.path()};
  TERCET_ASSIGN(const TensorData data, source.read(tensor, expert));
  const int64_t row_bytes = dtype_row_bytes(tensor.type, tensor.inputs());
  const int64_t step = std::clamp<int64_t>(kPieceElements / tensor.inputs(), 1, tensor.outputs());
  std::vector<float> values;
  for (int64_t row = 0; row < tensor.outputs(); row += step) {
    const int64_t rows = std::min(step, tensor.outputs() - row);
    values.resize(static_cast<size_t>(rows * tensor.inputs()));
    for (int64_t r = 0; r < rows; ++r)
      quant::dequantize_row(tensor.type, data.bytes.data() + (row + r) * row_bytes,
                            values.data() + r * tensor.inputs(), tensor.inputs());
    TERCET_TRY(visit(row, values));
  }
  source.release(tensor, expert);
  return {};
}

void encode_rows(DType type, std::span<const float> values, int64_t inputs, std::vector<std::byte>& out) {
  const int64_t rows = static_cast<int64_t>(values.size()) / inputs;
  const int64_t row_bytes = dtype_row_bytes(type, inputs);
  out.resize(static_cast<size_t>(rows * row_bytes));
  for (int64_t r = 0; r < rows; ++r)
    quant::quantize_row(type, values.data() + r * inputs, out.data() + r * row_bytes, inputs);
}

DType most_common_type(const std::map<DType, uint64_t>& bytes_by_type) {
  const auto most = std::max_element(bytes_by_type.begin(), bytes_by_type.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  return most == bytes_by_type.end() ? DType::kF32 : most->first;
}

}  // namespace tercet::model
