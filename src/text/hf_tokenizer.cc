#include "text/hf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/log.h"
#include "text/byte_level.h"
#include "text/fim_texts.h"
#include "text/tokenizer_json.h"

namespace tercet::text {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kSpecialTokens[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                          "pad_token", "cls_token", "mask_token"};

Error in_file(ErrorCode code, const fs::path& path, std::string message) {
  return {code, std::move(message), path.string()};
}

// The contents of a file that may be missing.
Result<std::string> read_if_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) ? read_file(path.string()) : std::string();
}

// The object in a file, an empty one where the file is missing.
Result<json> read_object(const fs::path& path) {
  TERCET_ASSIGN(const std::string text, read_if_there(path));
  if (text.empty()) return json::object();
  json object = json::parse(text, nullptr, false);
  if (!object.is_object()) return in_file(ErrorCode::kCorrupt, path, "is no JSON object");
  return object;
}

// A token is written as its text, or as an object that has it as "content"; "" for null and anything else.
std::string token_text(const json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end()) return {};
  const json& value = at->is_object() && at->contains("content") ? (*at)["content"] : *at;
  return value.is_string() ? value.get<std::string>() : std::string();
}

using TokenNames = std::vector<std::pair<std::string, std::string>>;

TokenNames special_token_names(const json& config, const json& map) {
  TokenNames names;
  for (const char* key : kSpecialTokens) {
    std::string text = token_text(config, key);
    if (text.empty()) text = token_text(map, key);
    if (!text.empty()) names.emplace_back(key, std::move(text));
  }
  // Names that only this model's template knows.
  const auto extra = config.find("extra_special_tokens");
  if (extra != config.end() && extra->is_object()) {
    for (const auto& [key, value] : extra->items()) {
      std::string text = token_text(*extra, key.c_str());
      if (!text.empty()) names.emplace_back(key, std::move(text));
    }
  }
  return names;
}

// The token with this text. One of the vocabulary's own becomes an added token, as transformers makes it.
TokenId special_token_id(const std::string& text, TokenizerSpec& spec) {
  for (const AddedToken& token : spec.added_tokens) {
    if (token.content == text) return token.id;
  }
  const std::string bytes = spec.bpe.byte_symbols && spec.model == ModelKind::kBpe
                                ? bytes_of_byte_level(text).value_or(text)
                                : text;
  const auto at = std::find(spec.texts.begin(), spec.texts.end(), bytes);
  if (at == spec.texts.end()) return kNoToken;
  const auto id = static_cast<TokenId>(at - spec.texts.begin());
  spec.added_tokens.push_back({.id = id, .content = text, .special = true});
  spec.is_control[static_cast<size_t>(id)] = 1;
  return id;
}

Status apply_special_tokens(const TokenNames& names, const fs::path& folder, TokenizerSpec& spec) {
  const std::pair<std::string_view, TokenId*> fields[] = {
      {"bos_token", &spec.bos}, {"eos_token", &spec.eos}, {"pad_token", &spec.pad}};
  for (const auto& [key, text] : names) {
    const auto* field = std::find_if(std::begin(fields), std::end(fields),
                                     [&, &name = key](const auto& f) { return f.first == name; });
    if (field == std::end(fields)) continue;
    *field->second = special_token_id(text, spec);
    if (*field->second != kNoToken) continue;
    if (key == "pad_token") {
      log_info("{}: pad_token {:?} is ignored: the vocabulary has no such token", folder.string(), text);
    } else {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("is {:?}, and the vocabulary of tokenizer.json has no such token", text),
                   (folder / "tokenizer_config.json").string() + ": " + key};
    }
  }
  return {};
}

// The tokens for filling in the middle: as the config names them, else by what code models call them.
void find_fim_tokens(const json& config, TokenizerSpec& spec) {
  const auto find = [&](const char* key, std::span<const std::string_view> texts) {
    const std::string named = token_text(config, key);
    for (const AddedToken& token : spec.added_tokens) {
      const bool known = std::find(texts.begin(), texts.end(), token.content) != texts.end();
      if (named.empty() ? known : token.content == named) return token.id;
    }
    return kNoToken;
  };
  const FimTokens fim = {find("prefix_token", kFimPrefixTexts), find("suffix_token", kFimSuffixTexts),
                         find("middle_token", kFimMiddleTexts)};
  if (fim.prefix != kNoToken && fim.suffix != kNoToken && fim.middle != kNoToken) spec.fim = fim;
}

// add_bos_token and add_eos_token, which win over tokenizer.json's post-processor where they are written.
void apply_additions(const json& config, TokenizerSpec& spec) {
  const auto apply = [&](const char* key, TokenId token, std::vector<TokenId>& list, bool at_front) {
    const auto at = config.find(key);
    if (at == config.end() || !at->is_boolean() || token == kNoToken) return;
    const bool added = std::find(list.begin(), list.end(), token) != list.end();
    if (!at->get<bool>()) std::erase(list, token);
    if (at->get<bool>() && !added) list.insert(at_front ? list.begin() : list.end(), token);
  };
  apply("add_bos_token", spec.bos, spec.prefix, true);
  apply("add_eos_token", spec.eos, spec.suffix, false);
}

struct TemplateSources {
  std::string plain, tool_use;
};

Result<TemplateSources> template_sources(const json& config, const fs::path& folder) {
  TemplateSources found;
  const auto at = config.find("chat_template");
  if (at != config.end() && at->is_string()) found.plain = at->get<std::string>();
  if (at != config.end() && at->is_array()) {
    for (const json& entry : *at) {
      const std::string name = token_text(entry, "name"), source = token_text(entry, "template");
      if (name == "default") found.plain = source;
      if (name == "tool_use") found.tool_use = source;
    }
  }
  TERCET_ASSIGN(const std::string file, read_if_there(folder / "chat_template.jinja"));
  if (!file.empty()) found = {file, ""};
  TERCET_ASSIGN(const std::string tool_use,
                read_if_there(folder / "additional_chat_templates" / "tool_use.jinja"));
  if (!tool_use.empty()) found.tool_use = tool_use;
  if (found.plain.empty()) {
    TERCET_ASSIGN(const json processor, read_object(folder / "chat_template.json"));
    found.plain = token_text(processor, "chat_template");
  }
  if (found.plain.empty()) std::swap(found.plain, found.tool_use);
  return found;
}

Result<ChatTemplate> parse_templates(TemplateSources sources) {
  TERCET_ASSIGN(ChatTemplate parsed, ChatTemplate::parse(std::move(sources.plain)));
  if (sources.tool_use.empty()) return parsed;
  TERCET_ASSIGN(ChatTemplate tool_use, ChatTemplate::parse(std::move(sources.tool_use)));
  parsed.set_tool_use(std::move(tool_use));
  return parsed;
}

Result<std::optional<ChatTemplate>> chat_template(const json& config, const fs::path& folder,
                                                  const HfTokenizerOptions& options) {
  if (!options.chat_template.empty()) {
    TERCET_ASSIGN(ChatTemplate given, ChatTemplate::parse(options.chat_template));
    return std::optional(std::move(given));
  }
  TERCET_ASSIGN(TemplateSources sources, template_sources(config, folder));
  if (sources.plain.empty()) return std::optional<ChatTemplate>();
  auto parsed = parse_templates(std::move(sources));
  if (parsed.ok()) return std::optional(*std::move(parsed));
  log_warning("{}: the chat template is left out: {}", folder.string(), parsed.error().to_string());
  return std::optional<ChatTemplate>();
}

Result<Tokenizer> open_tokenizer(const fs::path& file, const json& config, const TokenNames& names,
                                 const std::vector<TokenId>& more_end_tokens) {
  TERCET_ASSIGN(const std::string text, read_file(file.string()));
  const auto named = [&](Error error) {
    error.where.replace(0, std::string_view("tokenizer.json").size(), file.string());
    return error;
  };
  auto spec = tokenizer_spec_from_json(text);
  if (!spec.ok()) return named(spec.error());
  TERCET_TRY(apply_special_tokens(names, file.parent_path(), *spec));
  apply_additions(config, *spec);
  find_fim_tokens(config, *spec);
  for (const TokenId id : more_end_tokens) {
    if (id < 0 || static_cast<size_t>(id) >= spec->texts.size()) {
      return in_file(ErrorCode::kCorrupt, file,
                     fmt::format("the end token {} is outside the vocabulary of {}", id, spec->texts.size()));
    }
  }
  std::vector<TokenId>& ends = spec->end_tokens;
  ends.insert(ends.end(), more_end_tokens.begin(), more_end_tokens.end());
  if (spec->eos != kNoToken && std::find(ends.begin(), ends.end(), spec->eos) == ends.end())
    ends.push_back(spec->eos);
  auto tokenizer = Tokenizer::create(*std::move(spec));
  if (!tokenizer.ok()) return in_file(tokenizer.error().code, file, tokenizer.error().message);
  return tokenizer;
}

}  // namespace

bool is_hf_tokenizer(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return fs::exists(fs::path(path) / "tokenizer.json", ignored);
  return path.ends_with(".json") && fs::exists(path, ignored);
}

Result<ModelText> open_hf_tokenizer(const std::string& path, const HfTokenizerOptions& options) {
  std::error_code ignored;
  const fs::path file = fs::is_directory(path, ignored) ? fs::path(path) / "tokenizer.json" : fs::path(path);
  const fs::path folder = file.parent_path();
  if (!fs::exists(file, ignored)) {
    const bool has_model = fs::exists(folder / "tokenizer.model", ignored);
    return in_file(ErrorCode::kNotFound, file,
                   has_model ? "missing; a tokenizer.model alone is not supported: save the tokenizer again "
                               "with a recent `transformers`, which writes it"
                             : "missing");
  }
  TERCET_ASSIGN(const json config, read_object(folder / "tokenizer_config.json"));
  TERCET_ASSIGN(const json map, read_object(folder / "special_tokens_map.json"));
  TokenNames names = special_token_names(config, map);
  TERCET_ASSIGN(Tokenizer tokenizer, open_tokenizer(file, config, names, options.more_end_tokens));
  TERCET_ASSIGN(std::optional<ChatTemplate> parsed, chat_template(config, folder, options));
  return ModelText{std::move(tokenizer), std::move(parsed), std::move(names)};
}

}  // namespace tercet::text
