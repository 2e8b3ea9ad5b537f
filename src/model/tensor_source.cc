#include "model/tensor_source.h"

#include "base/check.h"

namespace tercet::model {

int64_t TensorInfo::experts() const {
  int64_t experts = 1;
  for (size_t i = 2; i < shape.size(); ++i) experts *= shape[i];
  return experts;
}

TensorSource::TensorSource(std::string path, std::vector<TensorInfo> tensors,
                           std::shared_ptr<const TensorReader> reader)
    : path_(std::move(path)),
      tensors_(std::make_shared<const std::vector<TensorInfo>>(std::move(tensors))),
      reader_(std::move(reader)) {
  for (size_t i = 0; i < tensors_->size(); ++i) TERCET_CHECK(by_name_.emplace((*tensors_)[i].name, i).second);
}

const TensorInfo* TensorSource::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &(*tensors_)[found->second];
}

}  // namespace tercet::model
