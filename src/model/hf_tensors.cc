#include "model/hf_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "base/log.h"
#include "model/decoder_spec.h"
#include "quant/codec.h"

namespace tercet::model {
namespace {

using format::Metadata;
using format::SafetensorsFile;
using format::SafetensorsTensor;

constexpr int64_t kMaxHeads = 1 << 20;

Error misshapen(std::span<const int64_t> shape, std::string_view expected) {
  return {ErrorCode::kCorrupt,
          fmt::format("has the shape [{}], expected {}", fmt::join(shape, ", "), expected), ""};
}

Result<int64_t> architecture_size(const Metadata& metadata, std::string_view key) {
  TERCET_ASSIGN(const std::string_view architecture, metadata.get_string("general.architecture"));
  TERCET_ASSIGN(const uint64_t value, metadata.get_uint(fmt::format("{}.{}", architecture, key)));
  if (value >= 1 && value <= static_cast<uint64_t>(kMaxHeads)) return static_cast<int64_t>(value);
  return Error{ErrorCode::kInvalidArgument, fmt::format("{} of {} cannot be right", key, value),
               metadata.source()};
}

// Sizes of a head of latent attention.
struct LatentHead {
  int64_t heads = 0;
  int64_t nope = 0;
  int64_t value = 0;
};

Result<LatentHead> latent_head(const Metadata& metadata) {
  LatentHead head;
  TERCET_ASSIGN(head.heads, architecture_size(metadata, "attention.head_count"));
  TERCET_ASSIGN(const int64_t key, architecture_size(metadata, "attention.key_length_mla"));
  TERCET_ASSIGN(const int64_t rope, architecture_size(metadata, "rope.dimension_count"));
  TERCET_ASSIGN(head.value, architecture_size(metadata, "attention.value_length_mla"));
  head.nope = key - rope;
  if (head.nope >= 1) return head;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("keys of {} per head with {} rotated cannot be right", key, rope),
               metadata.source()};
}

Result<HfPlacement> place_rows(std::span<const int64_t> shape, int64_t num_parts) {
  if (shape.empty() || shape.size() > 3 || (num_parts > 0 && shape.size() != 2))
    return misshapen(shape, num_parts > 0 ? "two dimensions" : "one to three dimensions");
  HfPlacement placement;
  placement.shape.assign(shape.rbegin(), shape.rend());
  if (num_parts > 0) placement.shape.push_back(num_parts);
  placement.row_stride = placement.shape[0];
  placement.expert_stride = shape.size() == 3 ? shape[1] * shape[2] : 0;
  return placement;
}

Result<HfPlacement> place_rotary(std::span<const int64_t> shape, HfLayout layout, const Metadata& metadata) {
  TERCET_ASSIGN(HfPlacement placement, place_rows(shape, 0));
  TERCET_ASSIGN(const int64_t heads,
                architecture_size(metadata, layout == HfLayout::kRotaryQ ? "attention.head_count"
                                                                         : "attention.head_count_kv"));
  if (shape.size() > 2 || shape[0] % (2 * heads) != 0)
    return misshapen(shape, fmt::format("rows for {} heads of even size", heads));
  // A bias is a column: its values move as the rows of the weight do.
  if (shape.size() == 1) placement.row_stride = 1;
  placement.rotary_heads = static_cast<int>(heads);
  return placement;
}

Result<HfPlacement> place_alternating(std::span<const int64_t> shape, HfLayout layout) {
  const bool odd = layout == HfLayout::kOddColumns || layout == HfLayout::kOddValues;
  const bool values = layout == HfLayout::kEvenValues || layout == HfLayout::kOddValues;
  if (shape.size() != (values ? 2 : 3) || shape.back() % 2 != 0)
    return misshapen(shape, values ? "[experts, 2 n]" : "[experts, inputs, 2 n]");
  HfPlacement placement;
  placement.offset = odd ? 1 : 0;
  if (values) {
    placement.shape = {shape[1] / 2, shape[0]};
    placement.row_stride = shape[1];
    placement.column_stride = 2;
  } else {
    placement.shape = {shape[1], shape[2] / 2, shape[0]};
    placement.row_stride = 2;
    placement.column_stride = shape[2];
    placement.expert_stride = shape[1] * shape[2];
  }
  return placement;
}

Result<HfPlacement> place_latent(std::span<const int64_t> shape, HfLayout layout, const Metadata& metadata) {
  TERCET_ASSIGN(const LatentHead head, latent_head(metadata));
  if (shape.size() != 2 || shape[0] != head.heads * (head.nope + head.value))
    return misshapen(shape, fmt::format("{} heads of {} + {} rows", head.heads, head.nope, head.value));
  const int64_t latent = shape[1];
  HfPlacement placement;
  placement.expert_stride = (head.nope + head.value) * latent;
  if (layout == HfLayout::kKeyUp) {
    placement.shape = {head.nope, latent, head.heads};
    placement.row_stride = 1;
    placement.column_stride = latent;
  } else {
    placement.shape = {latent, head.value, head.heads};
    placement.offset = head.nope * latent;
    placement.row_stride = latent;
  }
  return placement;
}

// Whether GGUF keeps the tensor in F32 whatever the type of the model: vectors, and layouts that say so.
bool is_f32(HfLayout layout, const HfPlacement& placement) {
  return placement.shape.size() == 1 || layout == HfLayout::kF32 || layout == HfLayout::kPlusOne ||
         layout == HfLayout::kEvenValues || layout == HfLayout::kOddValues;
}

// A GGUF tensor over the folder's.
struct Mapped {
  std::vector<const SafetensorsTensor*> parts;  // one, or one for each expert; empty: computed
  HfPlacement placement;
  bool plus_one = false;
  std::vector<float> computed;
};

template <class Element>
void gather(const HfPlacement& placement, const std::byte* source, int64_t outputs, std::byte* out) {
  const int64_t inputs = placement.rotary_heads > 0 && placement.shape.size() == 1 ? 1 : placement.shape[0];
  for (int64_t r = 0; r < outputs; ++r) {
    const std::byte* row =
        source + placement.source_row(r) * placement.row_stride * static_cast<int64_t>(sizeof(Element));
    if (placement.column_stride == 1) {
      std::memcpy(out, row, static_cast<size_t>(inputs) * sizeof(Element));
      out += static_cast<size_t>(inputs) * sizeof(Element);
      continue;
    }
    for (int64_t c = 0; c < inputs; ++c, out += sizeof(Element))
      std::memcpy(out, row + c * placement.column_stride * static_cast<int64_t>(sizeof(Element)),
                  sizeof(Element));
  }
}

class HfTensorReader : public TensorReader {
 public:
  HfTensorReader(std::shared_ptr<const SafetensorsFile> file, std::map<std::string, Mapped> tensors)
      : file_(std::move(file)), tensors_(std::move(tensors)) {}

  Result<TensorData> read(const TensorInfo& tensor, int64_t expert) const override {
    const Mapped& mapped = tensors_.at(tensor.name);
    if (mapped.parts.empty()) return TensorData{std::as_bytes(std::span(mapped.computed)), nullptr};
    const auto [source, bytes] = source_of(mapped, expert);
    const DType type = *mapped.parts[0]->type();
    std::shared_ptr<std::vector<std::byte>> owner;
    std::span<const std::byte> laid_out = source.first(static_cast<size_t>(bytes));
    // Nothing in the format aligns a tensor to its elements.
    const bool is_aligned =
        reinterpret_cast<uintptr_t>(source.data()) % static_cast<size_t>(dtype_info(type).block_bytes) == 0;
    if (!mapped.placement.is_contiguous() || !is_aligned) {
      owner = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(bytes));
      const bool moves_values = mapped.placement.rotary_heads > 0 && tensor.shape.size() == 1;
      const int64_t rows = moves_values ? tensor.shape[0] : tensor.outputs();
      if (dtype_info(type).block_bytes == 2) {
        gather<uint16_t>(mapped.placement, source.data(), rows, owner->data());
      } else {
        gather<float>(mapped.placement, source.data(), rows, owner->data());
      }
      laid_out = *owner;
    }
    if (tensor.type == type && !mapped.plus_one) return TensorData{laid_out, owner};
    const int64_t elements = tensor.inputs() * tensor.outputs();
    auto widened = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(elements) * sizeof(float));
    auto* values = reinterpret_cast<float*>(widened->data());
    quant::dequantize_row(type, laid_out.data(), values, elements);
    if (mapped.plus_one)
      for (int64_t i = 0; i < elements; ++i) values[i] += 1;
    return TensorData{*widened, widened};
  }

  void release(const TensorInfo& tensor, int64_t expert) const override {
    const Mapped& mapped = tensors_.at(tensor.name);
    if (!mapped.parts.empty()) file_->release(source_of(mapped, expert).first);
  }
  void release_all() const override { file_->release_all(); }

 private:
  // What the expert's elements are read from, and how many bytes they are.
  static std::pair<std::span<const std::byte>, int64_t> source_of(const Mapped& mapped, int64_t expert) {
    const bool has_parts = mapped.parts.size() > 1;
    const SafetensorsTensor& part = *mapped.parts[has_parts ? static_cast<size_t>(expert) : 0];
    const HfPlacement& placement = mapped.placement;
    const int64_t size = dtype_info(*part.type()).block_bytes;
    const int64_t begin = placement.offset + (has_parts ? 0 : expert * placement.expert_stride);
    const int64_t elements = placement.shape[0] * (placement.shape.size() > 1 ? placement.shape[1] : 1);
    auto source = part.data.subspan(static_cast<size_t>(begin * size));
    if (placement.expert_stride > 0)
      source = source.first(std::min(source.size(), static_cast<size_t>(placement.expert_stride * size)));
    return {source, elements * size};
  }

  std::shared_ptr<const SafetensorsFile> file_;
  std::map<std::string, Mapped> tensors_;
};

// The tensors that `name` maps to: none, one, or one for each expert.
Result<std::vector<const SafetensorsTensor*>> find_parts(const SafetensorsFile& file,
                                                         const HfTensorName& name, int64_t num_experts) {
  std::vector<const SafetensorsTensor*> parts;
  if (name.hf.find("{e}") == std::string::npos) {
    if (const SafetensorsTensor* tensor = file.find(name.hf)) parts.push_back(tensor);
    return parts;
  }
  if (file.find(expert_name(name.hf, 0)) == nullptr) return parts;
  for (int64_t e = 0; e < num_experts; ++e) {
    const SafetensorsTensor* tensor = file.find(expert_name(name.hf, e));
    if (tensor == nullptr)
      return Error{
          ErrorCode::kCorrupt,
          fmt::format("the tensor {} is missing; there are {} experts", expert_name(name.hf, e), num_experts),
          file.path()};
    if (!parts.empty() && (tensor->shape != parts[0]->shape || tensor->dtype != parts[0]->dtype))
      return Error{
          ErrorCode::kCorrupt,
          fmt::format("the tensor {} is {} [{}], and that of expert 0 {} [{}]", tensor->name, tensor->dtype,
                      fmt::join(tensor->shape, ", "), parts[0]->dtype, fmt::join(parts[0]->shape, ", ")),
          file.path()};
    parts.push_back(tensor);
  }
  return parts;
}

Status check_part(const SafetensorsFile& file, const SafetensorsTensor& tensor) {
  const auto type = tensor.type();
  const std::string where = file.shard_path(tensor.shard);
  if (type != DType::kF32 && type != DType::kF16 && type != DType::kBF16)
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("the tensor {} is {}; F32, F16 and BF16 can be computed", tensor.name, tensor.dtype),
        where};
  if (tensor.data.empty())
    return Error{
        ErrorCode::kCorrupt,
        fmt::format("the tensor {} is empty: its shape is [{}]", tensor.name, fmt::join(tensor.shape, ", ")),
        where};
  return {};
}

void log_unused(const SafetensorsFile& file, const std::set<const SafetensorsTensor*>& used) {
  std::vector<std::string_view> unused;
  for (const SafetensorsTensor& tensor : file.tensors())
    // Some early checkpoints hold the rotary frequencies, which the config gives too.
    if (!used.contains(&tensor) && !tensor.name.ends_with("rotary_emb.inv_freq"))
      unused.push_back(tensor.name);
  if (unused.empty()) return;
  const auto shown = std::span(unused).first(std::min<size_t>(unused.size(), 3));
  log_warning("{}: {} tensors are not used: {}{}", file.path(), unused.size(), fmt::join(shown, ", "),
              unused.size() > shown.size() ? ", ..." : "");
}

void replace_first(std::string& text, std::string_view what, std::string_view by) {
  if (const size_t at = text.find(what); at != std::string::npos) text.replace(at, what.size(), by);
}

}  // namespace

int64_t HfPlacement::source_row(int64_t row) const {
  if (rotary_heads == 0) return row;
  const int64_t rows = shape.size() == 1 ? shape[0] : shape[1];
  const int64_t head_rows = rows / rotary_heads;
  const int64_t in_head = row % head_rows;
  return row - in_head + in_head % 2 * (head_rows / 2) + in_head / 2;
}

Result<HfPlacement> place(HfLayout layout, std::span<const int64_t> shape, int64_t num_parts,
                          const Metadata& metadata) {
  switch (layout) {
    case HfLayout::kSame:
    case HfLayout::kF32:
    case HfLayout::kPlusOne: return place_rows(shape, num_parts);
    case HfLayout::kRotaryQ:
    case HfLayout::kRotaryK: return place_rotary(shape, layout, metadata);
    case HfLayout::kTransposed: {
      if (shape.size() != 3) return misshapen(shape, "[experts, inputs, outputs]");
      return HfPlacement{{shape[1], shape[2], shape[0]}, 0, shape[1] * shape[2], 1, shape[2], 0};
    }
    case HfLayout::kEvenColumns:
    case HfLayout::kOddColumns:
    case HfLayout::kEvenValues:
    case HfLayout::kOddValues: return place_alternating(shape, layout);
    case HfLayout::kKeyUp:
    case HfLayout::kValueUp: return place_latent(shape, layout, metadata);
  }
  return Error{ErrorCode::kInternal, "unknown layout", ""};
}

Result<std::vector<int64_t>> hf_shape(HfLayout layout, std::span<const int64_t> shape, bool is_part,
                                      const Metadata& metadata) {
  std::vector<int64_t> reversed(shape.rbegin(), shape.rend());
  switch (layout) {
    case HfLayout::kTransposed: return std::vector{shape[2], shape[0], shape[1]};
    case HfLayout::kEvenColumns:
    case HfLayout::kOddColumns: return std::vector{shape[2], shape[0], 2 * shape[1]};
    case HfLayout::kEvenValues:
    case HfLayout::kOddValues: return std::vector{shape[1], 2 * shape[0]};
    case HfLayout::kKeyUp:
    case HfLayout::kValueUp: {
      TERCET_ASSIGN(const LatentHead head, latent_head(metadata));
      return std::vector{head.heads * (head.nope + head.value), shape[layout == HfLayout::kKeyUp ? 1 : 0]};
    }
    default: break;
  }
  if (is_part) reversed.erase(reversed.begin());
  return reversed;
}

std::vector<HfTensorName> expand_rules(std::span<const HfTensorRule> rules, int64_t num_layers) {
  std::vector<HfTensorName> names;
  const auto add = [&](const HfTensorRule& rule, const std::string& layer, std::string_view suffix) {
    HfTensorName name{std::string(rule.gguf), std::string(rule.hf), rule.layout};
    for (std::string* text : {&name.gguf, &name.hf}) {
      replace_first(*text, "{}", layer);
      replace_first(*text, ".*", suffix);
    }
    names.push_back(std::move(name));
  };
  const auto add_layer = [&](const std::string& layer) {
    for (const HfTensorRule& rule : rules) {
      if ((rule.gguf.find("{}") == rule.gguf.npos) != layer.empty()) continue;
      if (!rule.gguf.ends_with(".*")) {
        add(rule, layer, "");
      } else {
        for (const char* suffix : {".weight", ".bias"}) add(rule, layer, suffix);
      }
    }
  };
  add_layer("");
  for (int64_t i = 0; i < num_layers; ++i) add_layer(std::to_string(i));
  return names;
}

std::string expert_name(const std::string& hf, int64_t expert) {
  std::string name = hf;
  replace_first(name, "{e}", std::to_string(expert));
  return name;
}

Result<TensorSource> hf_tensor_source(std::shared_ptr<const SafetensorsFile> file,
                                      std::span<const HfTensorRule> rules, const Metadata& metadata,
                                      std::vector<ComputedTensor> computed) {
  TERCET_ASSIGN(const int64_t num_layers, architecture_size(metadata, "block_count"));
  if (num_layers > kMaxLayers)
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} layers cannot be right", num_layers),
                 metadata.source()};
  TERCET_ASSIGN(const std::string_view architecture, metadata.get_string("general.architecture"));
  TERCET_ASSIGN(const uint64_t num_experts,
                metadata.get_uint_or(fmt::format("{}.expert_count", architecture), 0));
  std::vector<TensorInfo> tensors;
  std::map<std::string, Mapped> mapped;
  std::set<const SafetensorsTensor*> used;
  // Embedding models are published as the inner model alone, without its prefix.
  constexpr std::string_view kInner = "model.";
  const bool is_inner = std::ranges::none_of(
      file->tensors(), [&](const SafetensorsTensor& tensor) { return tensor.name.starts_with(kInner); });
  for (HfTensorName& name : expand_rules(rules, num_layers)) {
    if (is_inner && name.hf.starts_with(kInner)) name.hf.erase(0, kInner.size());
    TERCET_ASSIGN(std::vector<const SafetensorsTensor*> parts,
                  find_parts(*file, name, static_cast<int64_t>(std::min<uint64_t>(num_experts, kMaxHeads))));
    if (parts.empty()) continue;
    for (const SafetensorsTensor* part : parts) {
      TERCET_TRY(check_part(*file, *part));
      used.insert(part);
    }
    const bool has_parts = name.hf.find("{e}") != std::string::npos;
    auto placement =
        place(name.layout, parts[0]->shape, has_parts ? static_cast<int64_t>(parts.size()) : 0, metadata);
    if (!placement.ok())
      return Error{placement.error().code,
                   fmt::format("the tensor {} {}", parts[0]->name, placement.error().message), file->path()};
    const DType type = is_f32(name.layout, *placement) ? DType::kF32 : *parts[0]->type();
    tensors.push_back({name.gguf, type, placement->shape});
    mapped[name.gguf] = {std::move(parts), *std::move(placement), name.layout == HfLayout::kPlusOne, {}};
  }
  for (ComputedTensor& tensor : computed) {
    tensors.push_back({tensor.name, DType::kF32, {static_cast<int64_t>(tensor.values.size())}});
    mapped[tensor.name].computed = std::move(tensor.values);
  }
  log_unused(*file, used);
  const std::string path = file->path();
  return TensorSource(path, std::move(tensors),
                      std::make_shared<HfTensorReader>(std::move(file), std::move(mapped)));
}

}  // namespace tercet::model
