// The tensors of a Hugging Face folder under GGUF's names: rules that say which tensor is which and how its
// elements are laid out, and the TensorSource over the folder's safetensors. The same rules read the other
// way write a folder from GGUF.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/metadata.h"
#include "format/safetensors.h"
#include "model/tensor_source.h"

namespace tercet::model {

// How the elements of a folder's tensor lie in GGUF's.
enum class HfLayout : uint8_t {
  kSame,
  kF32,         // the same, as F32 whatever the folder's type
  kRotaryQ,     // each head's rows (i, i + n / 2) become neighbours, for q's heads
  kRotaryK,     // and for k's
  kPlusOne,     // norms that multiply by 1 + w
  kTransposed,  // [experts, inputs, outputs]
  // [experts, inputs, 2 outputs] and [experts, 2 outputs], whose columns alternate between gate and up.
  kEvenColumns,
  kOddColumns,
  kEvenValues,
  kOddValues,
  // Of kv_b_proj [heads (nope + v), latent]: W_UK transposed, and W_UV; one matrix a head.
  kKeyUp,
  kValueUp,
};

// "{}" stands for the layer's number, "{e}" for the expert's where each expert is a tensor; ".*" at the end
// of both names for .weight and .bias.
struct HfTensorRule {
  std::string_view gguf;
  std::string_view hf;
  HfLayout layout = HfLayout::kSame;
};

// A tensor that the folder does not hold and GGUF does: factors of rotary frequencies.
struct ComputedTensor {
  std::string name;
  std::vector<float> values;
};

// Where the elements of a GGUF tensor lie in the folder's: element (expert e, row r, column c) at
// offset + e expert_stride + r row_stride + c column_stride. With `rotary_heads`, r is first mapped to the
// row that kRotaryQ and kRotaryK take.
struct HfPlacement {
  std::vector<int64_t> shape;  // GGUF's
  int64_t offset = 0;
  int64_t expert_stride = 0;
  int64_t row_stride = 0;
  int64_t column_stride = 1;
  int rotary_heads = 0;

  bool is_contiguous() const { return column_stride == 1 && row_stride == shape[0] && rotary_heads == 0; }
  int64_t source_row(int64_t row) const;
};

// `shape`: of one tensor of the folder; `num_parts`: how many of them make up GGUF's (the experts), 0 where
// it is one. kCorrupt, without a name, where the shape cannot be taken apart so.
Result<HfPlacement> place(HfLayout layout, std::span<const int64_t> shape, int64_t num_parts,
                          const format::Metadata& metadata);
// The shape of the folder's tensor, for GGUF's `shape`; without the experts where each is a tensor.
Result<std::vector<int64_t>> hf_shape(HfLayout layout, std::span<const int64_t> shape, bool is_part,
                                      const format::Metadata& metadata);

// Rules with the layer's number and the suffix filled in; "{e}" stays.
struct HfTensorName {
  std::string gguf;
  std::string hf;
  HfLayout layout;
};
std::vector<HfTensorName> expand_rules(std::span<const HfTensorRule> rules, int64_t num_layers);
std::string expert_name(const std::string& hf, int64_t expert);

// `metadata` as the family's translation made it. Tensors that no rule takes are named in the log. kCorrupt
// for a missing expert or an impossible shape, kUnsupported for a type other than F32, F16 and BF16; both
// name the tensor.
Result<TensorSource> hf_tensor_source(std::shared_ptr<const format::SafetensorsFile> file,
                                      std::span<const HfTensorRule> rules, const format::Metadata& metadata,
                                      std::vector<ComputedTensor> computed);

}  // namespace tercet::model
