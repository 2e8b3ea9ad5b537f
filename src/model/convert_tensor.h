// Tensors read as floats, piece by piece, and rows in another type.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "model/tensor_source.h"

namespace tercet::model {

// Calls visit(first row, values) for the rows of one expert, some at a time; releases the expert's pages.
// kUnsupported for a type that holds no weights.
Status for_each_rows(const TensorSource& source, const TensorInfo& tensor, int64_t expert,
                     const std::function<Status(int64_t row, std::span<const float> values)>& visit);

// Rows of `inputs` values in `type`.
void encode_rows(DType type, std::span<const float> values, int64_t inputs, std::vector<std::byte>& out);

// The type that holds the most bytes; F32 where there is none.
DType most_common_type(const std::map<DType, uint64_t>& bytes_by_type);

}  // namespace tercet::model
