// For tests: a model's matrices as another type.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "base/float16.h"
#include "model/tensor_source.h"
#include "quant/codec.h"

namespace tercet::model {

// Hands matrices of a float type out as F16, BF16 or Q8_0, rounded to nearest.
class RoundingReader final : public TensorReader {
 public:
  explicit RoundingReader(TensorSource source) : source_(std::move(source)) {}

  Result<TensorData> read(const TensorInfo& tensor, int64_t expert) const override {
    const TensorInfo& original = *source_.find(tensor.name);
    TERCET_ASSIGN(const TensorData data, source_.read(original, expert));
    if (tensor.type == original.type) return data;
    std::vector<float> values(static_cast<size_t>(original.inputs() * original.outputs()));
    quant::dequantize_row(original.type, data.bytes.data(), values.data(),
                          static_cast<int64_t>(values.size()));
    auto rounded = std::make_shared<std::vector<std::byte>>();
    const auto put = [&](auto value) {
      const auto* bytes = reinterpret_cast<const std::byte*>(&value);
      rounded->insert(rounded->end(), bytes, bytes + sizeof value);
    };
    if (tensor.type != DType::kQ8_0) {
      for (const float value : values)
        put(tensor.type == DType::kBF16 ? f32_to_bf16(value) : f32_to_f16(value));
      return TensorData{*rounded, rounded};
    }
    for (auto block = values.begin(); block != values.end(); block += 32) {
      float amax = 0;
      std::for_each(block, block + 32, [&](float value) { amax = std::max(amax, std::fabs(value)); });
      const float scale = amax / 127, inverse = amax == 0 ? 0 : 1 / scale;
      put(f32_to_f16(scale));
      std::for_each(block, block + 32, [&](float value) {
        put(static_cast<int8_t>(std::clamp(std::lround(value * inverse), -127L, 127L)));
      });
    }
    return TensorData{*rounded, rounded};
  }
  void release(const TensorInfo&, int64_t) const override {}
  void release_all() const override {}

 private:
  TensorSource source_;
};

// With the type that the tensor of the same name has in `types`.
inline TensorSource rounded_as(const TensorSource& source, const TensorSource& types) {
  std::vector<TensorInfo> tensors = source.tensors();
  for (TensorInfo& tensor : tensors) tensor.type = types.find(tensor.name)->type;
  return TensorSource(source.path(), std::move(tensors), std::make_shared<RoundingReader>(source));
}

inline TensorSource rounded(const TensorSource& source, DType type) {
  std::vector<TensorInfo> tensors = source.tensors();
  for (TensorInfo& tensor : tensors)
    if (tensor.shape.size() > 1 && tensor.inputs() % 32 == 0 && !tensor.name.ends_with(".bias"))
      tensor.type = type;
  return TensorSource(source.path(), std::move(tensors), std::make_shared<RoundingReader>(source));
}

}  // namespace tercet::model
