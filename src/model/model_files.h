// A model's files opened as metadata and tensors in GGUF's terms: a GGUF file, or a Hugging Face folder
// translated. What the tokenizer needs is not touched.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/metadata.h"
#include "model/families/family.h"
#include "model/tensor_source.h"

namespace tercet::model {

struct ModelFiles {
  std::string path;
  bool is_folder = false;
  std::shared_ptr<const format::Metadata> metadata;
  TensorSource tensors;

  ModelSource source() const { return {*metadata, tensors}; }
};

// `path`: a .gguf file, or the first shard of a split one; or a folder with config.json and safetensors.
// Errors name the file and what is wrong with it.
Result<ModelFiles> open_model_files(const std::string& path);

// The ids of a folder's end tokens, of generation_config.json, else of config.json; none where neither says.
Result<std::vector<int32_t>> folder_end_tokens(const std::string& path);

}  // namespace tercet::model
