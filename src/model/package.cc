#include "model/package.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "model/families/family.h"
#include "model/model_files.h"
#include "text/hf_tokenizer.h"

namespace tercet::model {
namespace {

using format::Metadata;

Result<GenerationDefaults> generation_defaults(const Metadata& metadata) {
  GenerationDefaults defaults;
  const auto get = [&](const char* name, std::optional<float>& out) -> Status {
    const std::string key = std::string("general.sampling.") + name;
    if (!metadata.has(key)) return {};
    TERCET_ASSIGN(const double value, metadata.get_float(key));
    out = static_cast<float>(value);
    return {};
  };
  TERCET_TRY(get("temp", defaults.temperature));
  TERCET_TRY(get("top_p", defaults.top_p));
  TERCET_TRY(get("min_p", defaults.min_p));
  TERCET_TRY(get("penalty_repeat", defaults.repetition_penalty));
  if (metadata.has("general.sampling.top_k")) {
    TERCET_ASSIGN(const int64_t k, metadata.get_int("general.sampling.top_k"));
    defaults.top_k = static_cast<int>(std::clamp<int64_t>(k, 0, INT32_MAX));
  }
  return defaults;
}

// By llama.cpp's numbers for ARCH.pooling_type. A file that says none is of a model that writes text.
Result<std::optional<core::Pooling>> pooling_of(const Metadata& metadata, const std::string& architecture) {
  constexpr uint64_t kNone = 0, kMean = 1, kLast = 3;
  const std::string key = architecture + ".pooling_type";
  if (!metadata.has(key)) return std::optional(core::Pooling::kLast);
  TERCET_ASSIGN(const uint64_t type, metadata.get_uint(key));
  if (type == kMean) return std::optional(core::Pooling::kMean);
  if (type == kNone || type == kLast) return std::optional(core::Pooling::kLast);
  return std::optional<core::Pooling>();
}

// The type that holds the most bytes.
std::string main_type(const std::vector<TensorInfo>& tensors) {
  std::map<DType, int64_t> bytes;
  for (const TensorInfo& tensor : tensors) bytes[tensor.type] += tensor.bytes();
  const auto most =
      std::max_element(bytes.begin(), bytes.end(), [](auto& a, auto& b) { return a.second < b.second; });
  return most == bytes.end() ? "" : std::string(dtype_name(most->first));
}

Error in_file(Error error, const std::string& path) {
  error.where = error.where.empty() || error.where == path ? path : path + ": " + error.where;
  return error;
}

Result<text::ModelText> text_of(const ModelFiles& files, const PackageOptions& options) {
  if (!files.is_folder) return text_from_metadata(*files.metadata, options);
  if (!text::is_hf_tokenizer(files.path))
    return Error{
        ErrorCode::kNotFound,
        "has no tokenizer.json: text cannot be turned into tokens. Take the file from where the model "
        "came from",
        files.path};
  TERCET_ASSIGN(const std::vector<int32_t> end_tokens, folder_end_tokens(files.path));
  return text::open_hf_tokenizer(files.path, {.chat_template = options.chat_template,
                                              .more_end_tokens = {end_tokens.begin(), end_tokens.end()}});
}

}  // namespace

Result<Package> open_package(const std::string& path, const PackageOptions& options) {
  TERCET_ASSIGN(const ModelFiles files, open_model_files(path));
  auto spec = model_spec(files.source());
  if (!spec.ok()) return in_file(spec.error(), path);
  TERCET_ASSIGN(text::ModelText text, text_of(files, options));
  if (text.tokenizer.vocab_size() > spec->vocab_size)
    return Error{ErrorCode::kCorrupt,
                 fmt::format("the tokenizer has {} tokens and the embedding {} rows",
                             text.tokenizer.vocab_size(), spec->vocab_size),
                 path};
  auto defaults = generation_defaults(*files.metadata);
  if (!defaults.ok()) return in_file(defaults.error(), path);
  auto pooling = pooling_of(*files.metadata, spec->architecture);
  if (!pooling.ok()) return in_file(pooling.error(), path);
  const std::string file_name = std::filesystem::path(path).stem().string();
  TERCET_ASSIGN(const std::string_view name, files.metadata->get_string_or("general.name", file_name));
  int64_t weight_bytes = 0;
  for (const TensorInfo& tensor : files.tensors.tensors()) weight_bytes += tensor.bytes();
  return Package{path,
                 std::string(name),
                 main_type(files.tensors.tensors()),
                 weight_bytes,
                 *std::move(spec),
                 files.tensors,
                 std::move(text.tokenizer),
                 std::move(text.chat_template),
                 std::move(text.special_tokens),
                 *defaults,
                 *pooling,
                 files.metadata};
}

}  // namespace tercet::model
