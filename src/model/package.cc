#include "model/package.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "base/log.h"
#include "format/gguf.h"
#include "model/families/family.h"
#include "text/vocab_gguf.h"

namespace tercet::model {
namespace {

using format::GgufEntry;
using format::GgufFile;
using format::GgufType;
using format::Metadata;

bool is_integer(GgufType type) {
  return type != GgufType::kFloat32 && type != GgufType::kFloat64 && type != GgufType::kBool &&
         type != GgufType::kString;
}

text::MetadataSource metadata_source(const Metadata& metadata) {
  const auto array_of = [&metadata](const std::string& key, auto wanted) -> const GgufEntry* {
    const GgufEntry* entry = metadata.find(key);
    return entry != nullptr && entry->is_array && wanted(entry->item_type) ? entry : nullptr;
  };
  // A Result's value, or nullopt for a missing key or another type.
  const auto maybe = [](auto result) {
    return result.ok() ? std::optional(*std::move(result)) : std::nullopt;
  };
  text::MetadataSource source;
  source.contains = [&metadata](const std::string& key) { return metadata.has(key); };
  source.get_string = [&metadata](const std::string& key) -> std::optional<std::string> {
    const auto value = metadata.get_string(key);
    return value.ok() ? std::optional(std::string(*value)) : std::nullopt;
  };
  source.get_int = [&metadata, maybe](const std::string& key) { return maybe(metadata.get_int(key)); };
  source.get_bool = [&metadata, maybe](const std::string& key) { return maybe(metadata.get_bool(key)); };
  source.get_strings = [array_of](const std::string& key) -> std::optional<std::vector<std::string>> {
    const GgufEntry* entry = array_of(key, [](GgufType type) { return type == GgufType::kString; });
    if (entry == nullptr) return std::nullopt;
    const auto views = decode_strings(*entry);
    return std::vector<std::string>(views.begin(), views.end());
  };
  source.get_floats = [array_of](const std::string& key) -> std::optional<std::vector<float>> {
    const GgufEntry* entry = array_of(key, [](GgufType type) { return type == GgufType::kFloat32; });
    if (entry == nullptr) return std::nullopt;
    const auto values = decode_floats(*entry);
    return std::vector<float>(values.begin(), values.end());
  };
  source.get_ints = [array_of](const std::string& key) -> std::optional<std::vector<int64_t>> {
    const GgufEntry* entry = array_of(key, is_integer);
    return entry == nullptr ? std::nullopt : std::optional(decode_ints(*entry));
  };
  return source;
}

class GgufTensorReader : public TensorReader {
 public:
  explicit GgufTensorReader(std::shared_ptr<const GgufFile> file) : file_(std::move(file)) {}

  Result<TensorData> read(const TensorInfo& tensor, int64_t expert) const override {
    return TensorData{bytes(tensor, expert), nullptr};
  }
  void release(const TensorInfo& tensor, int64_t expert) const override {
    file_->release(bytes(tensor, expert));
  }
  void release_all() const override { file_->release_all(); }

 private:
  std::span<const std::byte> bytes(const TensorInfo& tensor, int64_t expert) const {
    const auto size = static_cast<size_t>(tensor.expert_bytes());
    return file_->find_tensor(tensor.name)->data.subspan(static_cast<size_t>(expert) * size, size);
  }

  std::shared_ptr<const GgufFile> file_;
};

TensorSource tensor_source(std::shared_ptr<const GgufFile> file) {
  std::vector<TensorInfo> tensors;
  for (const format::GgufTensor& tensor : file->tensors())
    tensors.push_back({tensor.name, tensor.type, tensor.shape});
  const std::string path = file->path();
  return TensorSource(path, std::move(tensors), std::make_shared<GgufTensorReader>(std::move(file)));
}

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

// The type that holds the most bytes.
std::string main_type(const std::vector<TensorInfo>& tensors) {
  std::map<DType, int64_t> bytes;
  for (const TensorInfo& tensor : tensors) bytes[tensor.type] += tensor.bytes();
  const auto most =
      std::max_element(bytes.begin(), bytes.end(), [](auto& a, auto& b) { return a.second < b.second; });
  return most == bytes.end() ? "" : std::string(dtype_name(most->first));
}

std::vector<std::pair<std::string, std::string>> special_tokens(const text::Tokenizer& tokenizer) {
  std::vector<std::pair<std::string, std::string>> tokens;
  if (tokenizer.bos()) tokens.emplace_back("bos_token", tokenizer.piece(*tokenizer.bos()));
  if (tokenizer.eos()) tokens.emplace_back("eos_token", tokenizer.piece(*tokenizer.eos()));
  if (tokenizer.pad()) tokens.emplace_back("pad_token", tokenizer.piece(*tokenizer.pad()));
  return tokens;
}

// A template that does not parse is no reason to refuse the model.
Result<std::optional<text::ChatTemplate>> chat_template(const Metadata& metadata,
                                                        const PackageOptions& options) {
  if (!options.chat_template.empty()) {
    TERCET_ASSIGN(text::ChatTemplate parsed, text::ChatTemplate::parse(options.chat_template));
    return std::optional(std::move(parsed));
  }
  if (!metadata.has("tokenizer.chat_template")) return std::optional<text::ChatTemplate>();
  TERCET_ASSIGN(const std::string_view source, metadata.get_string("tokenizer.chat_template"));
  auto parsed = text::ChatTemplate::parse(std::string(source));
  if (parsed.ok()) return std::optional(*std::move(parsed));
  log_warning("{}: the chat template is left out: {}", metadata.source(), parsed.error().to_string());
  return std::optional<text::ChatTemplate>();
}

Error in_file(Error error, const std::string& path) {
  error.where = error.where.empty() || error.where == path ? path : path + ": " + error.where;
  return error;
}

}  // namespace

Result<Package> open_package(const std::string& path, const PackageOptions& options) {
  TERCET_ASSIGN(GgufFile opened, GgufFile::open(path));
  const auto file = std::make_shared<GgufFile>(std::move(opened));
  // The metadata lives as long as the file.
  const std::shared_ptr<const Metadata> metadata(file, &file->metadata());
  const TensorSource tensors = tensor_source(file);
  auto spec = model_spec({*metadata, tensors});
  if (!spec.ok()) return in_file(spec.error(), path);
  auto vocab = text::vocab_from_metadata(metadata_source(*metadata), options.pre_tokenizer);
  if (!vocab.ok()) return in_file(vocab.error(), path);
  auto tokenizer_spec = text::tokenizer_spec(*std::move(vocab));
  if (!tokenizer_spec.ok()) return in_file(tokenizer_spec.error(), path);
  auto tokenizer = text::Tokenizer::create(*std::move(tokenizer_spec));
  if (!tokenizer.ok()) return in_file(tokenizer.error(), path);
  if (tokenizer->vocab_size() > spec->vocab_size)
    return Error{ErrorCode::kCorrupt,
                 fmt::format("the tokenizer has {} tokens and the embedding {} rows", tokenizer->vocab_size(),
                             spec->vocab_size),
                 path};
  auto parsed_template = chat_template(*metadata, options);
  if (!parsed_template.ok()) return in_file(parsed_template.error(), path);
  auto defaults = generation_defaults(*metadata);
  if (!defaults.ok()) return in_file(defaults.error(), path);
  const std::string file_name = std::filesystem::path(path).stem().string();
  TERCET_ASSIGN(const std::string_view name, metadata->get_string_or("general.name", file_name));
  int64_t weight_bytes = 0;
  for (const TensorInfo& tensor : tensors.tensors()) weight_bytes += tensor.bytes();
  return Package{path,
                 std::string(name),
                 main_type(tensors.tensors()),
                 weight_bytes,
                 *std::move(spec),
                 tensors,
                 *tokenizer,
                 *std::move(parsed_template),
                 special_tokens(*tokenizer),
                 *defaults,
                 metadata};
}

}  // namespace tercet::model
