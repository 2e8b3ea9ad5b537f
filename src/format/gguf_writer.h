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
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "format/gguf.h"
#include "tensor/dtype.h"

namespace tercet::format {

class GgufWriter {
 public:
  // Multiple of 8, a power of two. Set before the first tensor.
  explicit GgufWriter(uint32_t alignment = 32);

  void set(std::string_view key, bool value) { set_number(key, GgufType::kBool, value); }
  void set(std::string_view key, uint8_t value) { set_number(key, GgufType::kUint8, value); }
  void set(std::string_view key, int8_t value) { set_number(key, GgufType::kInt8, value); }
  void set(std::string_view key, uint16_t value) { set_number(key, GgufType::kUint16, value); }
  void set(std::string_view key, int16_t value) { set_number(key, GgufType::kInt16, value); }
  void set(std::string_view key, uint32_t value) { set_number(key, GgufType::kUint32, value); }
  void set(std::string_view key, int32_t value) { set_number(key, GgufType::kInt32, value); }
  void set(std::string_view key, uint64_t value) { set_number(key, GgufType::kUint64, value); }
  void set(std::string_view key, int64_t value) { set_number(key, GgufType::kInt64, value); }
  void set(std::string_view key, float value) { set_number(key, GgufType::kFloat32, value); }
  void set(std::string_view key, double value) { set_number(key, GgufType::kFloat64, value); }
  void set(std::string_view key, std::string_view value);
  void set(std::string_view key, const char* value) { set(key, std::string_view(value)); }
  void set(std::string_view key, std::span<const int32_t> values);
  void set(std::string_view key, std::span<const float> values);
  void set(std::string_view key, std::span<const std::string> values);
  // Copies an entry of another file as it is.
  void set(const GgufEntry& entry);

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

  template <class T>
  void set_number(std::string_view key, GgufType type, T value) {
    set_encoded(key, type, std::nullopt, {reinterpret_cast<const char*>(&value), sizeof value});
  }
  void set_encoded(std::string_view key, GgufType item_type, std::optional<uint64_t> array_count,
                   std::string_view encoded);
  Status pad(uint64_t written);

  uint32_t alignment_;
  std::string entries_;  // encoded
  std::vector<std::string> keys_;
  std::vector<Tensor> tensors_;
  std::optional<FileWriter> file_;
  size_t current_ = 0;            // tensor
  uint64_t current_written_ = 0;  // bytes of it
};

}  // namespace tercet::format
