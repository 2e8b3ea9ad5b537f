#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "format/gguf_writer.h"
#include "model/convert.h"
#include "model/convert_tensor.h"
#include "model/gguf_tokenizer.h"
#include "quant/encode.h"

namespace tercet::model {
namespace {

using format::GgufWriter;
using format::Metadata;

// llama.cpp's numbers for general.file_type (llama.h, enum llama_ftype).
constexpr std::pair<DType, uint32_t> kFileTypes[] = {
    {DType::kF32, 0},  {DType::kF16, 1},  {DType::kQ4_0, 2}, {DType::kQ4_1, 3},
    {DType::kQ8_0, 7}, {DType::kQ5_0, 8}, {DType::kQ5_1, 9}, {DType::kBF16, 32},
};
constexpr uint32_t kQuantizationVersion = 2;

// Of another file, and wrong in this one.
bool is_about_the_file(std::string_view key) {
  return key == "general.file_type" || key == "general.quantization_version" || key == "general.alignment" ||
         key.starts_with("split.");
}

// What llama.cpp wants in F32 whatever the type of the model: vectors, routers, experts' biases.
bool stays_f32(const TensorInfo& tensor) {
  return tensor.shape.size() == 1 || tensor.name.ends_with(".bias") ||
         tensor.name.ends_with("ffn_gate_inp.weight");
}

struct Plan {
  const TensorInfo* tensor;
  DType type;
};

std::vector<Plan> plan_types(const ModelFiles& model, const ConvertOptions& options, ConvertReport& report) {
  std::vector<Plan> plan;
  std::map<DType, uint64_t> bytes;
  std::vector<std::string> halves;
  for (const TensorInfo& tensor : model.tensors.tensors()) {
    DType type = options.type.value_or(tensor.type);
    if (stays_f32(tensor)) {
      type = DType::kF32;
    } else if (tensor.inputs() % dtype_info(type).block_elements != 0) {
      type = DType::kF16;
      halves.push_back(tensor.name);
    }
    plan.push_back({&tensor, type});
    const auto size =
        static_cast<uint64_t>(dtype_row_bytes(type, tensor.inputs()) * tensor.outputs() * tensor.experts());
    bytes[type] += size;
    report.bytes += size;
  }
  report.tensors = static_cast<int64_t>(plan.size());
  report.type = dtype_name(most_common_type(bytes));
  if (!halves.empty())
    report.notes.push_back(
        fmt::format("{} tensors are F16, as their rows do not divide into blocks of {}: {}{}", halves.size(),
                    dtype_info(*options.type).block_elements, halves[0], halves.size() > 1 ? ", ..." : ""));
  return plan;
}

Status write_tensor(const ModelFiles& model, const Plan& plan, GgufWriter& writer,
                    const std::function<void(int64_t bytes)>& read) {
  const TensorInfo& tensor = *plan.tensor;
  std::vector<std::byte> encoded;
  for (int64_t expert = 0; expert < tensor.experts(); ++expert) {
    if (plan.type == tensor.type) {
      TERCET_ASSIGN(const TensorData data, model.tensors.read(tensor, expert));
      TERCET_TRY(writer.write_tensor(data.bytes));
      model.tensors.release(tensor, expert);
    } else {
      TERCET_TRY(for_each_rows(model.tensors, tensor, expert, [&](int64_t, std::span<const float> values) {
        encode_rows(plan.type, values, tensor.inputs(), encoded);
        return writer.write_tensor(encoded);
      }));
    }
    read(tensor.expert_bytes());
  }
  return {};
}

Status set_metadata(const ModelFiles& model, const ConvertOptions& options, DType type, GgufWriter& writer,
                    ConvertReport& report) {
  for (const format::GgufEntry& entry : model.metadata->entries())
    if (!is_about_the_file(entry.key)) writer.set(entry);
  const auto* file_type = std::find_if(std::begin(kFileTypes), std::end(kFileTypes),
                                       [&](const auto& known) { return known.first == type; });
  if (file_type != std::end(kFileTypes)) writer.set("general.file_type", file_type->second);
  writer.set("general.quantization_version", kQuantizationVersion);
  if (!model.is_folder) return {};
  const TensorInfo* embedding = model.tensors.find("token_embd.weight");
  if (embedding == nullptr)
    return Error{ErrorCode::kCorrupt, "the tensor token_embd.weight is missing", model.path};
  Metadata tokenizer(model.path);
  TERCET_TRY(
      tokenizer_to_gguf(model.path, embedding->outputs(), options.pre_tokenizer, tokenizer, report.notes));
  writer.set_all(tokenizer);
  return {};
}

}  // namespace

Result<ConvertReport> convert_to_gguf(const ModelFiles& model, const std::string& path,
                                      const ConvertOptions& options) {
  if (options.type && !quant::can_quantize(*options.type))
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} cannot be written; known are f32, f16, bf16, q8_0, q4_0, q4_1, q5_0 and q5_1",
                    dtype_name(*options.type)),
        ""};
  ConvertReport report;
  const std::vector<Plan> plan = plan_types(model, options, report);
  GgufWriter writer;
  TERCET_TRY(set_metadata(model, options, *dtype_from_name(report.type), writer, report));
  uint64_t total = 0, done = 0;
  for (const Plan& tensor : plan) {
    writer.add_tensor(tensor.tensor->name, tensor.type, tensor.tensor->shape);
    total += static_cast<uint64_t>(tensor.tensor->bytes());
  }
  TERCET_TRY(writer.begin(path));
  for (const Plan& tensor : plan)
    TERCET_TRY(write_tensor(model, tensor, writer, [&](int64_t bytes) {
      done += static_cast<uint64_t>(bytes);
      if (options.progress) options.progress(done, total);
    }));
  TERCET_TRY(writer.finish());
  return report;
}

}  // namespace tercet::model
