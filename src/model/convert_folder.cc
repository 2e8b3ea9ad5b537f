#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "format/safetensors_writer.h"
#include "model/convert.h"
#include "model/convert_tensor.h"
#include "model/families/hf.h"
#include "model/gguf_tokenizer.h"

namespace tercet::model {
namespace {

namespace fs = std::filesystem;
using format::GgufEntry;
using format::GgufType;
using format::Metadata;
using format::SafetensorsWriter;
using nlohmann::ordered_json;

// A GGUF tensor, or one expert of it, within a folder's tensor.
struct Piece {
  const TensorInfo* tensor;
  int64_t expert = -1;  // all of them
  HfPlacement placement;
  bool minus_one = false;
};

struct Output {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<Piece> pieces;

  int64_t elements() const {
    int64_t elements = 1;
    for (const int64_t dim : shape) elements *= dim;
    return elements;
  }
};

class Planner {
 public:
  Planner(const ModelFiles& model, const HfFamily& family) : model_(model), family_(family) {}

  Result<std::vector<Output>> plan() {
    TERCET_ASSIGN(const std::string layers_key, architecture_key(*model_.metadata, "block_count"));
    TERCET_ASSIGN(const uint64_t layers, model_.metadata->get_uint(layers_key));
    if (layers > kMaxLayers)
      return Error{ErrorCode::kInvalidArgument, fmt::format("{} layers cannot be right", layers),
                   model_.path};
    size_t found = 0;
    for (const HfTensorName& name : expand_rules(family_.rules(), static_cast<int64_t>(layers))) {
      const TensorInfo* tensor = model_.tensors.find(name.gguf);
      if (tensor == nullptr) continue;
      ++found;
      TERCET_TRY(add(name, *tensor));
    }
    TERCET_TRY(check_all_found(found, layers));
    return std::move(outputs_);
  }

 private:
  Status add(const HfTensorName& name, const TensorInfo& tensor) {
    const bool by_expert = name.hf.find("{e}") != std::string::npos;
    TERCET_ASSIGN(const std::vector<int64_t> shape,
                  hf_shape(name.layout, tensor.shape, by_expert, *model_.metadata));
    auto placement = place(name.layout, shape, by_expert ? tensor.experts() : 0, *model_.metadata);
    if (!placement.ok() || placement->shape != tensor.shape)
      return Error{ErrorCode::kCorrupt,
                   fmt::format("the tensor {} has the shape [{}], which does not fit its model", tensor.name,
                               fmt::join(tensor.shape, ", ")),
                   model_.path};
    const bool minus_one = name.layout == HfLayout::kPlusOne;
    for (int64_t e = 0; e < (by_expert ? tensor.experts() : 1); ++e) {
      Output& output = output_of(by_expert ? expert_name(name.hf, e) : name.hf, shape);
      output.pieces.push_back({&tensor, by_expert ? e : -1, *placement, minus_one});
    }
    return {};
  }

  Output& output_of(const std::string& name, const std::vector<int64_t>& shape) {
    const auto [at, fresh] = by_name_.emplace(name, outputs_.size());
    if (fresh) outputs_.push_back({name, shape, {}});
    return outputs_[at->second];
  }

  Status check_all_found(size_t found, uint64_t layers) const {
    std::vector<std::string> placeless;
    std::map<std::string, bool> known;
    for (const HfTensorName& name : expand_rules(family_.rules(), static_cast<int64_t>(layers)))
      known[name.gguf] = true;
    for (const TensorInfo& tensor : model_.tensors.tensors())
      if (!known.contains(tensor.name) && !tensor.name.starts_with("rope_f"))
        placeless.push_back(tensor.name);
    if (found > 0 && placeless.empty()) return {};
    return Error{ErrorCode::kUnsupported,
                 found == 0
                     ? "has no tensor that a Hugging Face folder has"
                     : fmt::format("{} tensors have no place in a folder of {}: {}{}", placeless.size(),
                                   family_.model_class, placeless[0], placeless.size() > 1 ? ", ..." : ""),
                 model_.path};
  }

  const ModelFiles& model_;
  const HfFamily& family_;
  std::vector<Output> outputs_;
  std::map<std::string, size_t> by_name_;
};

// Writes the tensors of one .safetensors file.
class TensorWriter {
 public:
  TensorWriter(const ModelFiles& model, DType type, std::function<void(int64_t)> read)
      : model_(model), type_(type), read_(std::move(read)) {}

  Status write(const std::string& path, std::span<const Output> outputs) {
    SafetensorsWriter writer;
    for (const Output& output : outputs) writer.add_tensor(output.name, type_, output.shape);
    TERCET_TRY(writer.begin(path));
    for (const Output& output : outputs) TERCET_TRY(write_output(writer, output));
    return writer.finish();
  }

 private:
  Status write_values(SafetensorsWriter& writer, std::span<const float> values) {
    encode_rows(type_, values, static_cast<int64_t>(values.size()), encoded_);
    return writer.write_tensor(encoded_);
  }

  Status write_output(SafetensorsWriter& writer, const Output& output) {
    const Piece& first = output.pieces[0];
    // What keeps its order needs no buffer of its size.
    const bool streams = output.pieces.size() == 1 && first.placement.is_contiguous() && !first.minus_one &&
                         first.placement.offset == 0;
    if (streams) {
      return for_each_piece(first, [&](int64_t, int64_t, std::span<const float> values) {
        return write_values(writer, values);
      });
    }
    std::vector<float> whole(static_cast<size_t>(output.elements()));
    for (const Piece& piece : output.pieces)
      TERCET_TRY(for_each_piece(piece, [&](int64_t expert, int64_t row, std::span<const float> values) {
        scatter(piece, expert, row, values, whole);
        return Status();
      }));
    return write_values(writer, whole);
  }

  Status for_each_piece(
      const Piece& piece,
      const std::function<Status(int64_t expert, int64_t row, std::span<const float>)>& visit) {
    const int64_t begin = std::max<int64_t>(piece.expert, 0);
    const int64_t end = piece.expert < 0 ? piece.tensor->experts() : piece.expert + 1;
    for (int64_t e = begin; e < end; ++e) {
      TERCET_TRY(
          for_each_rows(model_.tensors, *piece.tensor, e, [&](int64_t row, std::span<const float> values) {
            return visit(piece.expert < 0 ? e : 0, row, values);
          }));
      read_(piece.tensor->expert_bytes());
    }
    return {};
  }

  static void scatter(const Piece& piece, int64_t expert, int64_t first_row, std::span<const float> values,
                      std::span<float> whole) {
    const HfPlacement& p = piece.placement;
    // The values of a vector move as rows do.
    const bool is_column = p.rotary_heads > 0 && p.shape.size() == 1;
    const int64_t inputs = is_column ? 1 : p.shape[0];
    for (size_t i = 0; i < values.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const int64_t row = p.source_row(first_row + at / inputs);
      const int64_t to =
          p.offset + expert * p.expert_stride + row * p.row_stride + at % inputs * p.column_stride;
      whole[static_cast<size_t>(to)] = piece.minus_one ? values[i] - 1 : values[i];
    }
  }

  const ModelFiles& model_;
  DType type_;
  std::function<void(int64_t)> read_;
  std::vector<std::byte> encoded_;
};

ordered_json json_of(const GgufEntry& entry) {
  const auto as_json = [&](const auto& items) {
    ordered_json array = ordered_json::array();
    for (const auto& item : items) array.push_back(item);
    return entry.is_array ? array : array[0];
  };
  switch (entry.item_type) {
    case GgufType::kString: return as_json(decode_strings(entry));
    // The shortest decimal that reads as the same float: 1e-05 and not 9.999999747e-06.
    case GgufType::kFloat32: {
      std::vector<double> values;
      for (const double value : decode_floats(entry))
        values.push_back(std::stod(fmt::format("{}", static_cast<float>(value))));
      return as_json(values);
    }
    case GgufType::kFloat64: return as_json(decode_floats(entry));
    case GgufType::kBool: {
      const auto values = decode_ints(entry);
      return as_json(std::vector<bool>(values.begin(), values.end()));
    }
    default: return as_json(decode_ints(entry));
  }
}

// Fields as JSON; "rope_scaling.factor" is a field of an object.
std::string json_text(const Metadata& fields) {
  ordered_json root = ordered_json::object();
  for (const GgufEntry& entry : fields.entries()) {
    const size_t dot = entry.key.find('.');
    ordered_json& object = dot == entry.key.npos ? root : root[std::string(entry.key.substr(0, dot))];
    object[std::string(entry.key.substr(dot == entry.key.npos ? 0 : dot + 1))] = json_of(entry);
  }
  return root.dump(2) + "\n";
}

const char* torch_type(DType type) {
  return type == DType::kBF16 ? "bfloat16" : type == DType::kF16 ? "float16" : "float32";
}

Status copy_ids(const Metadata& metadata, Metadata& fields) {
  for (const char* name : {"bos", "eos"}) {
    const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
    if (!metadata.has(key)) continue;
    TERCET_ASSIGN(const uint64_t id, metadata.get_uint(key));
    fields.set(fmt::format("{}_token_id", name), id);
  }
  return {};
}

Result<std::string> config_text(const ModelFiles& model, const HfFamily& family, DType type) {
  const Metadata& metadata = *model.metadata;
  Metadata config(model.path);
  const std::vector<std::string> classes = {std::string(family.model_class)};
  config.set("architectures", classes);
  config.set("model_type", family.model_type);
  TERCET_TRY(family.to_config(metadata, config));
  TERCET_TRY(rope_tensors_to_config(model.source(), config));
  const TensorInfo* embedding = model.tensors.find("token_embd.weight");
  if (!config.has("vocab_size") && embedding != nullptr) config.set("vocab_size", embedding->outputs());
  config.set("tie_word_embeddings", model.tensors.find("output.weight") == nullptr);
  if (!config.has("attention_bias"))
    config.set("attention_bias", model.tensors.find("blk.0.attn_q.bias") != nullptr);
  config.set("torch_dtype", torch_type(type));
  TERCET_TRY(copy_ids(metadata, config));
  return json_text(config);
}

Result<std::string> generation_text(const Metadata& metadata) {
  Metadata fields(metadata.source());
  TERCET_TRY(copy_ids(metadata, fields));
  constexpr std::pair<const char*, const char*> kSampling[] = {{"temp", "temperature"},
                                                               {"top_p", "top_p"},
                                                               {"min_p", "min_p"},
                                                               {"penalty_repeat", "repetition_penalty"}};
  for (const auto& [from, to] : kSampling) {
    const std::string key = std::string("general.sampling.") + from;
    if (!metadata.has(key)) continue;
    TERCET_ASSIGN(const double value, metadata.get_float(key));
    fields.set(to, static_cast<float>(value));
  }
  if (metadata.has("general.sampling.top_k")) {
    TERCET_ASSIGN(const int64_t k, metadata.get_int("general.sampling.top_k"));
    fields.set("top_k", k);
  }
  return json_text(fields);
}

// Tensors of each file: as many as fit, at least one.
std::vector<std::span<const Output>> shards_of(std::span<const Output> outputs, int64_t element_bytes,
                                               uint64_t shard_bytes) {
  std::vector<std::span<const Output>> shards;
  size_t begin = 0;
  uint64_t bytes = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto size = static_cast<uint64_t>(outputs[i].elements() * element_bytes);
    if (i > begin && bytes + size > shard_bytes) {
      shards.push_back(outputs.subspan(begin, i - begin));
      begin = i;
      bytes = 0;
    }
    bytes += size;
  }
  shards.push_back(outputs.subspan(begin));
  return shards;
}

// A folder under a temporary name, removed again unless it was given its own.
class FolderWriter {
 public:
  static Result<FolderWriter> create(const std::string& path) {
    std::error_code error;
    if (fs::exists(path, error)) return Error{ErrorCode::kInvalidArgument, "exists already", path};
    const std::string name = (fs::path(path) / "").lexically_normal().parent_path().string();
    FolderWriter writer(path, fmt::format("{}.{}.part", name, ::getpid()));
    if (!fs::create_directories(writer.temporary_, error))
      return Error{ErrorCode::kIo, "cannot be created: " + error.message(), writer.temporary_};
    return writer;
  }
  FolderWriter(FolderWriter&& other) noexcept
      : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, "")) {}
  FolderWriter& operator=(FolderWriter&&) = delete;
  ~FolderWriter() {
    std::error_code ignored;
    if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
  }

  std::string file(const std::string& name) const { return (fs::path(temporary_) / name).string(); }
  Status commit() {
    std::error_code error;
    fs::rename(temporary_, path_, error);
    if (error) return Error{ErrorCode::kIo, "cannot be given its name: " + error.message(), path_};
    temporary_.clear();
    return {};
  }

 private:
  FolderWriter(std::string path, std::string temporary)
      : path_(std::move(path)), temporary_(std::move(temporary)) {}
  std::string path_;
  std::string temporary_;
};

Status write_weights(const FolderWriter& folder, std::span<const Output> outputs, DType type,
                     uint64_t shard_bytes, TensorWriter& writer) {
  const int64_t element_bytes = dtype_info(type).block_bytes;
  const auto shards = shards_of(outputs, element_bytes, shard_bytes);
  if (shards.size() == 1) return writer.write(folder.file("model.safetensors"), outputs);
  format::SafetensorsIndex index;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    TERCET_TRY(writer.write(folder.file(name), shards[i]));
    for (const Output& output : shards[i]) {
      index.weight_map[output.name] = name;
      index.total_bytes += static_cast<uint64_t>(output.elements() * element_bytes);
    }
  }
  return write_file(folder.file("model.safetensors.index.json"), safetensors_index_json(index));
}

Status write_tokenizer(const FolderWriter& folder, const Metadata& metadata, ConvertReport& report) {
  const auto files = tokenizer_from_gguf(metadata);
  if (!files.ok()) {
    report.notes.push_back("the tokenizer is left out: " + files.error().to_string());
    return {};
  }
  TERCET_TRY(write_file(folder.file("tokenizer.json"), files->tokenizer));
  TERCET_TRY(write_file(folder.file("tokenizer_config.json"), files->config));
  if (files->chat_template.empty()) return {};
  return write_file(folder.file("chat_template.jinja"), files->chat_template);
}

}  // namespace

Result<ConvertReport> convert_to_folder(const ModelFiles& model, const std::string& path,
                                        const ConvertOptions& options) {
  const DType type = options.type.value_or(DType::kBF16);
  if (type != DType::kF32 && type != DType::kF16 && type != DType::kBF16)
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} cannot be written to safetensors; known are f32, f16 and bf16", dtype_name(type)),
        ""};
  TERCET_ASSIGN(const HfFamily* family, hf_family(*model.metadata));
  TERCET_ASSIGN(const std::vector<Output> outputs, Planner(model, *family).plan());
  TERCET_ASSIGN(const std::string config, config_text(model, *family, type));
  TERCET_ASSIGN(const std::string generation, generation_text(*model.metadata));
  TERCET_ASSIGN(FolderWriter folder, FolderWriter::create(path));

  ConvertReport report;
  report.type = dtype_name(type);
  report.tensors = static_cast<int64_t>(outputs.size());
  uint64_t total = 0, done = 0;
  for (const Output& output : outputs) {
    report.bytes += static_cast<uint64_t>(output.elements() * dtype_info(type).block_bytes);
    for (const Piece& piece : output.pieces)
      total += static_cast<uint64_t>(piece.expert < 0 ? piece.tensor->bytes() : piece.tensor->expert_bytes());
  }
  TensorWriter writer(model, type, [&](int64_t bytes) {
    done += static_cast<uint64_t>(bytes);
    if (options.progress) options.progress(done, total);
  });
  TERCET_TRY(write_weights(folder, outputs, type, options.shard_bytes, writer));
  TERCET_TRY(write_file(folder.file("config.json"), config));
  TERCET_TRY(write_file(folder.file("generation_config.json"), generation));
  TERCET_TRY(write_tokenizer(folder, *model.metadata, report));
  TERCET_TRY(folder.commit());
  return report;
}

}  // namespace tercet::model
