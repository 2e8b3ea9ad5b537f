// Writes a safetensors file: the header first, then the tensors' data in the order they were added, so that a
// model larger than memory can be streamed. The file appears under its name only when it is complete.
//
//   SafetensorsWriter writer;
//   writer.add_tensor("model.norm.weight", DType::kBF16, {dims});
//   TERCET_TRY(writer.begin(path));
//   TERCET_TRY(writer.write_tensor(bytes));  // may be called several times per tensor
//   TERCET_TRY(writer.finish());
//
// For one thread. A name given twice, or a type that the format cannot hold, is a programming error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "tensor/dtype.h"

namespace tercet::format {

class SafetensorsWriter {
 public:
  // `shape` outermost dimension first.
  void add_tensor(std::string_view name, DType type, std::span<const int64_t> shape);
  // Writes the header. Nothing can be added afterwards.
  Status begin(const std::string& path);
  // The next bytes of the data; a piece never goes over its end.
  Status write_tensor(std::span<const std::byte> data);
  // kInvalidArgument where data is missing.
  Status finish();

 private:
  struct Tensor {
    std::string name;
    DType type;
    std::vector<int64_t> shape;
    uint64_t bytes;
  };
  std::vector<Tensor> tensors_;
  uint64_t total_ = 0;
  uint64_t written_ = 0;
  std::optional<FileWriter> file_;
};

}  // namespace tercet::format
