// Writes a GGUF v3 file: all metadata and tensor descriptions first, then the tensors' data in the same
// order, so a model larger than memory can be streamed. The file appears under its name only when it is
// complete.
//
//   GgufWriter writer;
//   writer.set("general.architecture", "llama");
//   writer.add_tensor("token_embd.weight", DType::kF16, {dims, vocabulary});
//   TERCET_TRY(writer.begin(path));
//   TERCET_TRY(writer.write_tensor(bytes));  // may be called several times per tensor
//   TERCET_TRY(writer.finish());
//
// For one thread. A key or name given twice, or a shape that its type cannot have, is a programming error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "base/result.h"
#include "format/metadata.h"
#include "tensor/dtype.h"

namespace tercet::format {

class GgufWriter {
 public:
  // Multiple of 8, a power of two. Set before the first tensor.
  explicit GgufWriter(uint32_t alignment = 32);

  // Metadata::set.
  template <class... Arguments>
  void set(Arguments&&... arguments) {
    TERCET_CHECK(!file_);
    metadata_.set(std::forward<Arguments>(arguments)...);
  }
  // All entries of `metadata`.
  void set_all(const Metadata& metadata);

  // `shape` in GGUF's order: the row length first.
  void add_tensor(std::string_view name, DType type, std::span<const int64_t> shape);

  // Writes everything up to the tensors' data. Nothing can be set or added afterwards.
  Status begin(const std::string& path);
  // The next bytes of the current tensor; a piece never goes over its end.
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

  Status pad(uint64_t written);

  uint32_t alignment_;
  Metadata metadata_;
  std::vector<Tensor> tensors_;
  std::optional<FileWriter> file_;
  size_t current_ = 0;            // tensor
  uint64_t current_written_ = 0;  // bytes of it
};

}  // namespace tercet::format
