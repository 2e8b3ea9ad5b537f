// The tensors of a model under GGUF's names, shapes and conventions, whatever the files behind them look like
// (decisions.md, "A Hugging Face folder is read as GGUF"). Descriptions are at hand at once; bytes come when
// they are read, one expert at a time, so that nothing larger than one matrix need be in memory.
//
// Safe to read from any thread. Copies share the files.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/dtype.h"

namespace tercet::model {

struct TensorInfo {
  std::string name;
  DType type = DType::kF32;
  std::vector<int64_t> shape;  // GGUF's order: [inputs], [inputs, outputs] or [inputs, outputs, experts]

  int64_t inputs() const { return shape[0]; }
  int64_t outputs() const { return shape.size() > 1 ? shape[1] : 1; }
  int64_t experts() const;  // 1 for a tensor of fewer than three dimensions
  int64_t elements() const { return inputs() * outputs() * experts(); }
  int64_t expert_bytes() const { return dtype_row_bytes(type, inputs()) * outputs(); }
  int64_t bytes() const { return expert_bytes() * experts(); }
};

// Rows of dtype_row_bytes(type, inputs) bytes. They lie in a mapped file or in `owner`, which keeps them
// alive where they had to be computed (rows in another order, a transposed matrix).
struct TensorData {
  std::span<const std::byte> bytes;
  std::shared_ptr<const std::vector<std::byte>> owner;
};

// How the bytes of one kind of file are read; see TensorSource for the functions' meaning.
class TensorReader {
 public:
  virtual ~TensorReader() = default;
  virtual Result<TensorData> read(const TensorInfo& tensor, int64_t expert) const = 0;
  virtual void release(const TensorInfo& tensor, int64_t expert) const = 0;
  virtual void release_all() const = 0;
};

class TensorSource {
 public:
  TensorSource() = default;
  // `path` names the file or folder in errors. Names are unique.
  TensorSource(std::string path, std::vector<TensorInfo> tensors, std::shared_ptr<const TensorReader> reader);

  const std::string& path() const { return path_; }
  // In the order of the file.
  const std::vector<TensorInfo>& tensors() const { return *tensors_; }
  // nullptr where there is none of that name.
  const TensorInfo* find(std::string_view name) const;
  // One expert of `tensor`, which is one of tensors().
  Result<TensorData> read(const TensorInfo& tensor, int64_t expert = 0) const {
    return reader_->read(tensor, expert);
  }
  // The bytes were used for the last time: their pages leave this process.
  void release(const TensorInfo& tensor, int64_t expert = 0) const { reader_->release(tensor, expert); }
  // The same for everything in the files, metadata included.
  void release_all() const { reader_->release_all(); }

 private:
  std::string path_;
  std::shared_ptr<const std::vector<TensorInfo>> tensors_ = std::make_shared<std::vector<TensorInfo>>();
  std::map<std::string, size_t, std::less<>> by_name_;
  std::shared_ptr<const TensorReader> reader_;
};

}  // namespace tercet::model
