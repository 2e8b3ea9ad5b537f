#include "model/package_text.h"

#include "base/log.h"
#include "format/gguf.h"
#include "text/hf_tokenizer.h"
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

std::vector<std::pair<std::string, std::string>> special_tokens(const text::Tokenizer& tokenizer) {
  std::vector<std::pair<std::string, std::string>> tokens;
  if (tokenizer.bos()) tokens.emplace_back("bos_token", tokenizer.piece(*tokenizer.bos()));
  if (tokenizer.eos()) tokens.emplace_back("eos_token", tokenizer.piece(*tokenizer.eos()));
  if (tokenizer.pad()) tokens.emplace_back("pad_token", tokenizer.piece(*tokenizer.pad()));
  return tokens;
}

// The default template, and the one that some models have for requests with tools.
Result<text::ChatTemplate> templates_of(const Metadata& metadata) {
  TERCET_ASSIGN(const std::string_view source, metadata.get_string("tokenizer.chat_template"));
  TERCET_ASSIGN(text::ChatTemplate parsed, text::ChatTemplate::parse(std::string(source)));
  if (!metadata.has("tokenizer.chat_template.tool_use")) return parsed;
  TERCET_ASSIGN(const std::string_view tool_use, metadata.get_string("tokenizer.chat_template.tool_use"));
  TERCET_ASSIGN(text::ChatTemplate for_tools, text::ChatTemplate::parse(std::string(tool_use)));
  parsed.set_tool_use(std::move(for_tools));
  return parsed;
}

// A template that does not parse is no reason to refuse the model.
Result<std::optional<text::ChatTemplate>> chat_template(const Metadata& metadata,
                                                        const PackageOptions& options) {
  if (!options.chat_template.empty()) {
    TERCET_ASSIGN(text::ChatTemplate parsed, text::ChatTemplate::parse(options.chat_template));
    return std::optional(std::move(parsed));
  }
  if (!metadata.has("tokenizer.chat_template")) return std::optional<text::ChatTemplate>();
  auto parsed = templates_of(metadata);
  if (parsed.ok()) return std::optional(*std::move(parsed));
  log_warning("{}: the chat template is left out: {}", metadata.source(), parsed.error().to_string());
  return std::optional<text::ChatTemplate>();
}

Result<text::ModelText> text_of(const Metadata& metadata, const PackageOptions& options) {
  TERCET_ASSIGN(text::VocabSpec vocab,
                text::vocab_from_metadata(metadata_source(metadata), options.pre_tokenizer));
  TERCET_ASSIGN(text::TokenizerSpec spec, text::tokenizer_spec(std::move(vocab)));
  TERCET_ASSIGN(text::Tokenizer tokenizer, text::Tokenizer::create(std::move(spec)));
  TERCET_ASSIGN(std::optional<text::ChatTemplate> parsed, chat_template(metadata, options));
  auto tokens = special_tokens(tokenizer);
  return text::ModelText{std::move(tokenizer), std::move(parsed), std::move(tokens)};
}

}  // namespace

Result<text::ModelText> text_from_metadata(const Metadata& metadata, const PackageOptions& options) {
  auto result = text_of(metadata, options);
  if (result.ok()) return result;
  Error error = std::move(result).error();
  error.where = error.where.empty() || error.where == metadata.source()
                    ? metadata.source()
                    : metadata.source() + ": " + error.where;
  return error;
}

Result<text::ModelText> open_text(const std::string& path, const PackageOptions& options) {
  if (text::is_hf_tokenizer(path))
    return text::open_hf_tokenizer(path, {.chat_template = options.chat_template});
  TERCET_ASSIGN(const GgufFile file, GgufFile::open(path));
  return text_from_metadata(file.metadata(), options);
}

}  // namespace tercet::model
