#include "model/package.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "model/families/family.h"

namespace tercet::model {
namespace {

using format::GgufFile;

TensorSource tensor_source(const std::shared_ptr<GgufFile>& file) {
  TensorSource source;
  source.path = file->path();
  source.find = [file](const std::string& name) -> std::optional<TensorView> {
    const format::GgufTensor* tensor = file->find_tensor(name);
    if (tensor == nullptr) return std::nullopt;
    return TensorView{tensor->type, tensor->rows(), tensor->row_elements(), tensor->data};
  };
  source.release = [file](const std::string& name) { file->release(*file->find_tensor(name)); };
  return source;
}

Result<GenerationDefaults> generation_defaults(const GgufFile& file) {
  GenerationDefaults defaults;
  const auto get = [&](const char* name, std::optional<float>& out) -> Status {
    const std::string key = std::string("general.sampling.") + name;
    if (!file.has(key)) return {};
    TERCET_ASSIGN(const double value, file.get_float(key));
    out = static_cast<float>(value);
    return {};
  };
  TERCET_TRY(get("temp", defaults.temperature));
  TERCET_TRY(get("top_p", defaults.top_p));
  TERCET_TRY(get("min_p", defaults.min_p));
  TERCET_TRY(get("penalty_repeat", defaults.repetition_penalty));
  if (file.has("general.sampling.top_k")) {
    TERCET_ASSIGN(const int64_t k, file.get_int("general.sampling.top_k"));
    defaults.top_k = static_cast<int>(std::clamp<int64_t>(k, 0, INT32_MAX));
  }
  return defaults;
}

// The type that holds the most bytes.
std::string main_type(const GgufFile& file) {
  std::map<DType, size_t> bytes;
  for (const format::GgufTensor& tensor : file.tensors()) bytes[tensor.type] += tensor.data.size();
  const auto most =
      std::max_element(bytes.begin(), bytes.end(), [](auto& a, auto& b) { return a.second < b.second; });
  return most == bytes.end() ? "" : std::string(dtype_name(most->first));
}

Error in_file(Error error, const std::string& path) {
  error.where = error.where.empty() || error.where == path ? path : path + ": " + error.where;
  return error;
}

}  // namespace

Result<Package> open_package(const std::string& path, const PackageOptions& options) {
  TERCET_ASSIGN(GgufFile opened, GgufFile::open(path));
  const auto file = std::make_shared<GgufFile>(std::move(opened));
  auto spec = spec_from_gguf(*file);
  if (!spec.ok()) return in_file(spec.error(), path);
  TERCET_ASSIGN(text::ModelText text, text_from_gguf(*file, options));
  if (text.tokenizer.vocab_size() > spec->vocab_size)
    return Error{ErrorCode::kCorrupt,
                 fmt::format("the tokenizer has {} tokens and the embedding {} rows",
                             text.tokenizer.vocab_size(), spec->vocab_size),
                 path};
  auto defaults = generation_defaults(*file);
  if (!defaults.ok()) return in_file(defaults.error(), path);
  const std::string file_name = std::filesystem::path(path).stem().string();
  TERCET_ASSIGN(const std::string_view name, file->get_string_or("general.name", file_name));
  int64_t weight_bytes = 0;
  for (const format::GgufTensor& tensor : file->tensors())
    weight_bytes += static_cast<int64_t>(tensor.data.size());
  return Package{path,
                 std::string(name),
                 main_type(*file),
                 weight_bytes,
                 *std::move(spec),
                 tensor_source(file),
                 std::move(text.tokenizer),
                 std::move(text.chat_template),
                 std::move(text.special_tokens),
                 *defaults,
                 file};
}

}  // namespace tercet::model
