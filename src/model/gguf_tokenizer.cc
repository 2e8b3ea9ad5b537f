#include "model/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "model/model_files.h"
#include "model/package_text.h"
#include "model/tokenizer_probe.h"
#include "text/hf_tokenizer.h"
#include "text/pre_tokenizers.h"
#include "text/vocab.h"

namespace tercet::model {
namespace {

namespace fs = std::filesystem;
using format::Metadata;
using nlohmann::json;
using text::TokenType;

// The score of tokens that no merge makes: below any place in a list of merges.
constexpr float kUnreachable = -1e7f;
// The pre-tokenizers that most models have, tried before the others.
constexpr const char* kUsualPre[] = {"llama-bpe", "qwen2", "gpt-2",  "smollm", "gpt-4o",      "deepseek-v3",
                                     "tekken",    "glm4",  "refact", "dbrx",   "deepseek-llm"};

struct Vocab {
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  std::vector<std::string> merges;  // "left right"
};

Error in_tokenizer(ErrorCode code, const std::string& folder, std::string message) {
  return {code, std::move(message), (fs::path(folder) / "tokenizer.json").string()};
}

const json& child(const json& object, const char* key) {
  static const json kNull;
  const auto at = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && at != object.end() ? *at : kNull;
}

std::string string_of(const json& object, const char* key) {
  const json& value = child(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

// Whether a step of this type occurs in a part of the file, in sequences too.
bool has_step(const json& part, const char* type) {
  if (string_of(part, "type") == type) return true;
  for (const char* list : {"pretokenizers", "normalizers", "decoders"}) {
    const json& steps = child(part, list);
    if (steps.is_array() && std::any_of(steps.begin(), steps.end(),
                                        [&](const json& step) { return string_of(step, "type") == type; }))
      return true;
  }
  return false;
}

Status place(const std::string& folder, Vocab& vocab, const json& id, const std::string& token,
             TokenType type) {
  if (!id.is_number_unsigned() || id.get<uint64_t>() >= vocab.tokens.size())
    return in_tokenizer(ErrorCode::kCorrupt, folder,
                        fmt::format("the token {} has the id {}, and the embedding {} rows",
                                    format::quote(token), id.dump(), vocab.tokens.size()));
  vocab.tokens[id.get<size_t>()] = token;
  vocab.types[id.get<size_t>()] = static_cast<int32_t>(type);
  return {};
}

Result<Vocab> read_vocab(const std::string& folder, const json& file, int64_t vocab_size) {
  Vocab vocab;
  const json& model = child(file, "model");
  for (int64_t id = 0; id < vocab_size; ++id) vocab.tokens.push_back(fmt::format("[PAD{}]", id));
  vocab.types.assign(vocab.tokens.size(), static_cast<int32_t>(TokenType::kUnused));
  const bool has_bytes = child(model, "byte_fallback") == true;
  const std::string unknown = string_of(model, "unk_token");
  for (const auto& [token, id] : child(model, "vocab").items()) {
    const bool is_byte = has_bytes && token.size() == 6 && token.starts_with("<0x") && token.ends_with(">");
    TERCET_TRY(place(folder, vocab, id, token,
                     is_byte                                ? TokenType::kByte
                     : !unknown.empty() && token == unknown ? TokenType::kUnknown
                                                            : TokenType::kNormal));
  }
  for (const json& added : child(file, "added_tokens")) {
    const std::string content = string_of(added, "content");
    const bool is_unknown = content == unknown && !unknown.empty();
    TERCET_TRY(place(folder, vocab, child(added, "id"), content,
                     is_unknown                        ? TokenType::kUnknown
                     : child(added, "special") == true ? TokenType::kControl
                                                       : TokenType::kUserDefined));
  }
  for (const json& merge : child(model, "merges")) {
    const bool is_pair =
        merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
    if (!merge.is_string() && !is_pair)
      return in_tokenizer(ErrorCode::kCorrupt, folder, "a merge is neither a string nor a pair of strings");
    vocab.merges.push_back(is_pair ? merge[0].get<std::string>() + " " + merge[1].get<std::string>()
                                   : merge.get<std::string>());
  }
  return vocab;
}

// SentencePiece merges the pair whose token has the highest score, BPE the first in its list: the scores are
// the places in the list.
std::vector<float> scores_of(const Vocab& vocab) {
  std::map<std::string_view, size_t> ids;
  for (size_t id = 0; id < vocab.tokens.size(); ++id) ids.emplace(vocab.tokens[id], id);
  std::vector<float> scores(vocab.tokens.size(), kUnreachable);
  for (size_t i = 0; i < vocab.merges.size(); ++i) {
    std::string token = vocab.merges[i];
    token.erase(token.find(' '), 1);
    const auto id = ids.find(token);
    if (id != ids.end()) scores[id->second] = std::max(scores[id->second], -static_cast<float>(i));
  }
  return scores;
}

void set_ids(const text::Tokenizer& tokenizer, const Vocab& vocab, const std::vector<int32_t>& end_tokens,
             Metadata& out) {
  const auto set = [&](const char* key, std::optional<text::TokenId> id) {
    if (id) out.set(std::string("tokenizer.ggml.") + key, static_cast<uint32_t>(*id));
  };
  set("bos_token_id", tokenizer.bos());
  const std::optional<text::TokenId> eos = tokenizer.eos()      ? tokenizer.eos()
                                           : end_tokens.empty() ? std::nullopt
                                                                : std::optional(end_tokens[0]);
  set("eos_token_id", eos);
  set("padding_token_id", tokenizer.pad());
  for (const int32_t id : end_tokens)
    if (!eos || id != *eos) {
      set("eot_token_id", id);
      break;
    }
  const auto unknown =
      std::find(vocab.types.begin(), vocab.types.end(), static_cast<int32_t>(TokenType::kUnknown));
  if (unknown != vocab.types.end())
    set("unknown_token_id", static_cast<text::TokenId>(unknown - vocab.types.begin()));
  const auto with = tokenizer.encode("a", {.add_special = true}), without = tokenizer.encode("a");
  const bool adds_bos = with.size() > without.size() && tokenizer.bos() && with.front() == *tokenizer.bos();
  const bool adds_eos = with.size() > without.size() + (adds_bos ? 1 : 0) && eos && with.back() == *eos;
  out.set("tokenizer.ggml.add_bos_token", adds_bos);
  out.set("tokenizer.ggml.add_eos_token", adds_eos);
}

// The name whose tokenizer gives what the folder's does. All names are tried, the usual ones first.
Result<std::string> recognise_pre(const std::string& folder, const Metadata& metadata,
                                  const text::Tokenizer& tokenizer, const std::string& given) {
  std::vector<std::string> names(std::begin(kUsualPre), std::end(kUsualPre));
  for (const std::string_view name : text::pre_tokenizer_names()) names.emplace_back(name);
  if (!given.empty()) names = {given};
  std::string difference;
  for (const std::string& name : names) {
    TERCET_ASSIGN(const text::ModelText made,
                  text_from_metadata(metadata, {.pre_tokenizer = name, .chat_template = {}}));
    difference = tokenizer_difference(made.tokenizer, tokenizer);
    if (difference.empty()) return name;
  }
  return in_tokenizer(ErrorCode::kUnsupported, folder,
                      given.empty()
                          ? "splits text in a way that no pre-tokenizer of GGUF does"
                          : fmt::format("splits text in another way than {}: {}", given, difference));
}

}  // namespace

Status tokenizer_to_gguf(const std::string& folder, int64_t vocab_size, const std::string& pre_tokenizer,
                         Metadata& out, std::vector<std::string>& notes) {
  if (!text::is_hf_tokenizer(folder)) {
    notes.push_back(
        "the folder has no tokenizer.json, so the file has no tokenizer: it computes token ids only");
    out.set("tokenizer.ggml.model", "none");
    return {};
  }
  TERCET_ASSIGN(const std::string json_text, read_file((fs::path(folder) / "tokenizer.json").string()));
  const json file = json::parse(json_text, nullptr, false);
  const json& model = child(file, "model");
  const std::string type = string_of(model, "type");
  if (type != "BPE" && !child(model, "merges").is_array())
    return in_tokenizer(ErrorCode::kUnsupported, folder,
                        fmt::format("the model is {}; BPE can be written as GGUF", format::quote(type)));
  TERCET_ASSIGN(const std::vector<int32_t> end_tokens, folder_end_tokens(folder));
  TERCET_ASSIGN(const text::ModelText original, text::open_hf_tokenizer(folder, {}));
  TERCET_ASSIGN(const Vocab vocab, read_vocab(folder, file, vocab_size));
  const bool byte_level =
      has_step(child(file, "pre_tokenizer"), "ByteLevel") || has_step(child(file, "decoder"), "ByteLevel");
  out.set("tokenizer.ggml.model", byte_level ? "gpt2" : "llama");
  out.set("tokenizer.ggml.tokens", vocab.tokens);
  out.set("tokenizer.ggml.token_type", std::span<const int32_t>(vocab.types));
  set_ids(original.tokenizer, vocab, end_tokens, out);
  if (original.chat_template) out.set("tokenizer.chat_template", original.chat_template->source());
  if (byte_level) {
    out.set("tokenizer.ggml.merges", vocab.merges);
    TERCET_ASSIGN(const std::string pre, recognise_pre(folder, out, original.tokenizer, pre_tokenizer));
    out.set("tokenizer.ggml.pre", pre);
    return {};
  }
  const std::vector<float> scores = scores_of(vocab);
  out.set("tokenizer.ggml.scores", std::span<const float>(scores));
  const auto prefixed = original.tokenizer.encode("a");
  out.set("tokenizer.ggml.add_space_prefix",
          !prefixed.empty() && vocab.tokens[static_cast<size_t>(prefixed[0])].starts_with("▁"));
  out.set("tokenizer.ggml.pre", "default");
  TERCET_ASSIGN(const text::ModelText made, text_from_metadata(out, {}));
  const std::string difference = tokenizer_difference(made.tokenizer, original.tokenizer);
  if (difference.empty()) return {};
  return in_tokenizer(ErrorCode::kUnsupported, folder,
                      fmt::format("gives other tokens as GGUF's SentencePiece: {}", difference));
}

}  // namespace tercet::model
