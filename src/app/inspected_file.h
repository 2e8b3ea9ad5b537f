// What `inspect` shows of a model's files, whatever their format: a GGUF file, a .safetensors file, or a
// Hugging Face folder.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/metadata.h"
#include "tensor/dtype.h"

namespace tercet::app {

struct InspectedTensor {
  std::string name;
  std::string_view type_name;
  std::optional<DType> type;   // nullopt: of safetensors, without a counterpart
  std::vector<int64_t> shape;  // in the file's order
  std::span<const std::byte> data;
  uint32_t shard = 0;

  int64_t elements() const;
};

struct InspectedFile {
  std::string path;
  std::string format;    // "GGUF", "safetensors"
  uint32_t version = 0;  // 0: the format has none
  int num_shards = 0;
  uint64_t file_bytes = 0;
  // GGUF's; a folder as the engine reads it, in GGUF's keys; a .safetensors file's own strings.
  std::shared_ptr<const format::Metadata> metadata;
  std::vector<InspectedTensor> tensors;
  // Keys and values of a token in F16, where the engine can run the model.
  std::optional<uint64_t> kv_bytes_per_token;
  std::vector<std::string> notes;
  // Lets go of the pages under a tensor's data.
  std::function<void(std::span<const std::byte>)> release;
};

Result<InspectedFile> open_inspected(const std::string& path);

}  // namespace tercet::app
