#include "app/weight_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <set>

#include "quant/codec.h"

namespace tercet::app {
namespace {

constexpr size_t kMaxListedRows = 10;
constexpr int64_t kPiece = 16384;  // elements dequantized at a time: a multiple of every block

struct Counts {
  int64_t nans = 0;
  int64_t infs = 0;
};

// A tensor that can be read, as rows.
struct Rows {
  DType type;
  int64_t row_elements;
  int64_t rows;
};

std::optional<Rows> rows_of(const InspectedTensor& tensor, bool innermost_first) {
  if (!tensor.type || !quant::can_dequantize(*tensor.type)) return std::nullopt;
  const int64_t elements = tensor.elements();
  const int64_t inner = tensor.shape.empty() ? 1
                        : innermost_first    ? tensor.shape.front()
                                             : tensor.shape.back();
  return Rows{*tensor.type, inner, inner > 0 ? elements / inner : 0};
}

// Counts within one row, which starts at `row`.
Counts check_row(const Rows& rows, const std::byte* row, std::vector<float>& values) {
  Counts counts;
  for (int64_t begin = 0; begin < rows.row_elements; begin += kPiece) {
    const int64_t n = std::min(kPiece, rows.row_elements - begin);
    quant::dequantize_row(rows.type, row + dtype_row_bytes(rows.type, begin), values.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      counts.nans += std::isnan(values[static_cast<size_t>(i)]);
      counts.infs += std::isinf(values[static_cast<size_t>(i)]);
    }
  }
  return counts;
}

NonFiniteTensor check_tensor(const InspectedTensor& tensor, const Rows& rows, std::vector<float>& values) {
  NonFiniteTensor result{.name = tensor.name, .first_rows = {}};
  const int64_t row_bytes = dtype_row_bytes(rows.type, rows.row_elements);
  for (int64_t row = 0; row < rows.rows; ++row) {
    const Counts counts = check_row(rows, tensor.data.data() + row * row_bytes, values);
    if (counts.nans + counts.infs == 0) continue;
    result.nans += counts.nans;
    result.infs += counts.infs;
    ++result.rows;
    if (result.first_rows.size() < kMaxListedRows) result.first_rows.push_back(row);
  }
  return result;
}

}  // namespace

WeightCheck check_weights(const InspectedFile& file, const std::function<void(uint64_t)>& progress) {
  WeightCheck check;
  std::set<std::string> skipped;
  std::vector<float> values(kPiece);
  uint64_t done = 0;
  for (const InspectedTensor& tensor : file.tensors) {
    if (const auto rows = rows_of(tensor, file.format == "GGUF")) {
      NonFiniteTensor found = check_tensor(tensor, *rows, values);
      if (found.rows > 0) check.bad.push_back(std::move(found));
      ++check.checked_tensors;
      file.release(tensor.data);
    } else {
      skipped.emplace(tensor.type_name);
    }
    done += tensor.data.size();
    if (progress) progress(done);
  }
  check.skipped_types.assign(skipped.begin(), skipped.end());
  return check;
}

std::string describe(const NonFiniteTensor& tensor) {
  const bool more = tensor.rows > static_cast<int64_t>(tensor.first_rows.size());
  return fmt::format("{}: {} NaN and {} Inf in {} row{}: {}{}", tensor.name, tensor.nans, tensor.infs,
                     tensor.rows, tensor.rows == 1 ? "" : "s", fmt::join(tensor.first_rows, ", "),
                     more ? ", ..." : "");
}

}  // namespace tercet::app
