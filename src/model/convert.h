// A model written in another format: a Hugging Face folder (or a GGUF file) as GGUF, and GGUF as a folder.
// What is written as GGUF is the metadata and the tensors that the engine reads, so the converted file
// computes what the folder did, bit for bit when the types stay.
//
// Output appears under its name only when it is complete; a full disk leaves nothing behind. Memory: one
// matrix.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/model_files.h"

namespace tercet::model {

struct ConvertOptions {
  // Of the matrices; vectors and routers stay F32 in GGUF. Default: the type that they have.
  std::optional<DType> type;
  std::string pre_tokenizer;             // tokenizer.ggml.pre, in place of what is recognised
  uint64_t shard_bytes = 5'000'000'000;  // of a folder's .safetensors files
  // Bytes of the input read so far, and of all of it.
  std::function<void(uint64_t done, uint64_t total)> progress = {};
};

struct ConvertReport {
  std::string type;  // of most weights in the output
  int64_t tensors = 0;
  uint64_t bytes = 0;              // of the output's tensors
  std::vector<std::string> notes;  // what was done in another way than asked for, in words
};

// kInvalidArgument for a type that cannot be written.
Result<ConvertReport> convert_to_gguf(const ModelFiles& model, const std::string& path,
                                      const ConvertOptions& options = {});

// `folder` must not exist. kUnsupported where the architecture has no Hugging Face family or a tensor has no
// place in it. A tokenizer that cannot be written is left out, and the report says so.
Result<ConvertReport> convert_to_folder(const ModelFiles& model, const std::string& folder,
                                        const ConvertOptions& options = {});

}  // namespace tercet::model
