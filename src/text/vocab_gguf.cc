#include "text/vocab_gguf.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "text/pre_tokenizers.h"

namespace tercet::text {
namespace {

std::string key_of(const char* name) { return fmt::format("tokenizer.ggml.{}", name); }

Error wrong_kind(const std::string& key, const char* expected) {
  return {ErrorCode::kCorrupt, fmt::format("expected {}, found another type", expected), key};
}

// Sets `out` when the key is there; an error when it is there and of another kind.
template <class Getter, class T>
Status read(const MetadataSource& m, const Getter& get, const char* name, const char* expected, T& out) {
  const std::string key = key_of(name);
  if (auto value = get(key)) {
    out = std::move(*value);
  } else if (m.contains(key)) {
    return wrong_kind(key, expected);
  }
  return {};
}

Status read_id(const MetadataSource& m, const char* name, size_t vocab_size, TokenId& out) {
  int64_t id = out;
  TERCET_TRY(read(m, m.get_int, name, "an integer", id));
  // Converters write -1 or 2^32-1 for "none".
  if (id == -1 || id == 0xFFFFFFFF) {
    out = kNoToken;
  } else if (id < 0 || static_cast<uint64_t>(id) >= vocab_size) {
    // A default of the format that this vocabulary is too small for is no fault of the file.
    if (!m.contains(key_of(name))) return out = kNoToken, Status{};
    return Error{ErrorCode::kCorrupt,
                 fmt::format("is token {}, the vocabulary has {} tokens", id, vocab_size), key_of(name)};
  } else {
    out = static_cast<TokenId>(id);
  }
  return {};
}

Status read_kind(const MetadataSource& m, VocabSpec& v) {
  const std::string key = key_of("model");
  const auto model = m.get_string(key);
  if (!model) return Error{ErrorCode::kCorrupt, "missing, so the file has no tokenizer", key};
  if (*model == "gpt2" || *model == "gemma4" || *model == "whitespace") {
    v.kind = VocabKind::kBpe;
    v.bos = v.eos = 11;
  } else if (*model == "llama") {
    v.kind = VocabKind::kSpm;
    v.bos = 1, v.eos = 2, v.unknown = 0;
    v.add_bos = v.add_space_prefix = true;
  } else if (*model == "t5") {
    v.kind = VocabKind::kUnigram;
    v.eos = 1, v.unknown = 2, v.pad = 0;
    v.add_eos = v.add_space_prefix = true;
  } else if (*model == "bert") {
    v.kind = VocabKind::kWordPiece;
    v.bos = 101, v.unknown = 100, v.separator = 102, v.pad = 0;
    v.add_bos = true;
  } else {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("tokenizer model {:?} is not supported; supported are gpt2, llama, t5, bert, "
                             "gemma4 and whitespace",
                             *model),
                 key};
  }
  if (*model == "gemma4") v.bos = v.eos = kNoToken, v.pre_tokenizer = "gemma4";
  return {};
}

Status read_pre_tokenizer(const MetadataSource& m, const std::string& override_name, VocabSpec& v) {
  if (v.kind != VocabKind::kBpe) return {};
  if (v.pre_tokenizer.empty()) {
    TERCET_TRY(read(m, m.get_string, "pre", "a string", v.pre_tokenizer));
  }
  if (!override_name.empty()) v.pre_tokenizer = override_name;
  if (v.pre_tokenizer.empty()) {
    log_warning(
        "tokenizer.ggml.pre is missing: assuming \"default\" (llama.cpp's), which may split text in other "
        "places than "
        "the model was trained with. Convert the model again, or name the pre-tokenizer");
    v.pre_tokenizer = "default";
  }
  PreTokenizer pre;
  if (!find_pre_tokenizer(v.pre_tokenizer, pre)) return {};  // vocab.cc reports it
  v.add_bos = pre.adds_bos;
  if (pre.no_default_bos) v.bos = kNoToken;
  return {};
}

Status read_lists(const MetadataSource& m, VocabSpec& v) {
  auto tokens = m.get_strings(key_of("tokens"));
  if (!tokens) return Error{ErrorCode::kCorrupt, "missing, or no array of strings", key_of("tokens")};
  v.tokens = std::move(*tokens);
  TERCET_TRY(read(m, m.get_strings, "merges", "an array of strings", v.merges));

  if (auto scores = m.get_floats(key_of("scores"))) {
    v.scores = std::move(*scores);
  } else if (auto integers = m.get_ints(key_of("scores"))) {
    v.scores.assign(integers->begin(), integers->end());
  } else if (m.contains(key_of("scores"))) {
    return wrong_kind(key_of("scores"), "an array of float32");
  }
  if (!v.scores.empty() && v.scores.size() != v.tokens.size()) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} scores for {} tokens", v.scores.size(), v.tokens.size()), key_of("scores")};
  }
  if (v.scores.empty()) v.scores.assign(v.tokens.size(), 0.0f);

  std::vector<int64_t> types;
  TERCET_TRY(read(m, m.get_ints, "token_type", "an array of integers", types));
  if (!m.contains(key_of("token_type")))
    types.assign(v.tokens.size(), static_cast<int64_t>(TokenType::kNormal));
  if (types.size() != v.tokens.size()) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} token types for {} tokens", types.size(), v.tokens.size()),
                 key_of("token_type")};
  }
  for (const int64_t type : types) {
    v.types.push_back(type >= 0 && type <= 6 ? static_cast<TokenType>(type) : TokenType::kUndefined);
  }

  std::vector<int64_t> charsmap;
  TERCET_TRY(read(m, m.get_ints, "precompiled_charsmap", "an array of bytes", charsmap));
  for (const int64_t byte : charsmap) v.charsmap += static_cast<char>(byte & 0xFF);
  return {};
}

Status read_ids(const MetadataSource& m, VocabSpec& v) {
  const std::pair<const char*, TokenId*> ids[] = {
      {"bos_token_id", &v.bos},
      {"eos_token_id", &v.eos},
      {"eot_token_id", &v.eot},
      {"eom_token_id", &v.eom},
      {"unknown_token_id", &v.unknown},
      {"seperator_token_id", &v.separator},
      {"padding_token_id", &v.pad},
      {"fim_pad_token_id", &v.fim_pad},
      {"fim_rep_token_id", &v.fim_repo},
      {"fim_sep_token_id", &v.fim_separator},
      {"fim_pre_token_id", &v.fim_prefix},
      {"fim_suf_token_id", &v.fim_suffix},
      {"fim_mid_token_id", &v.fim_middle},
  };
  for (const auto& [name, id] : ids) TERCET_TRY(read_id(m, name, v.tokens.size(), *id));
  return {};
}

}  // namespace

Result<VocabSpec> vocab_from_metadata(const MetadataSource& m, const std::string& pre_tokenizer) {
  VocabSpec v;
  TERCET_TRY(read_kind(m, v));
  TERCET_TRY(read_pre_tokenizer(m, pre_tokenizer, v));
  TERCET_TRY(read_lists(m, v));
  TERCET_TRY(read_ids(m, v));
  if (v.add_bos && v.bos == kNoToken) v.add_bos = false;
  TERCET_TRY(read(m, m.get_bool, "add_bos_token", "a bool", v.add_bos));
  TERCET_TRY(read(m, m.get_bool, "add_eos_token", "a bool", v.add_eos));
  TERCET_TRY(read(m, m.get_bool, "add_space_prefix", "a bool", v.add_space_prefix));
  TERCET_TRY(read(m, m.get_bool, "remove_extra_whitespaces", "a bool", v.remove_extra_spaces));
  if (v.kind == VocabKind::kBpe) v.add_space_prefix = false;
  v.lowercase = v.pre_tokenizer != "whitespace";
  TERCET_TRY(read(m, m.get_bool, "normalizer.lowercase", "a bool", v.lowercase));
  v.strip_accents = v.lowercase;
  TERCET_TRY(read(m, m.get_bool, "normalizer.strip_accents", "a bool", v.strip_accents));

  std::string name = m.get_string("general.name").value_or("");
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  v.strips_after_special_tokens = name.find("phi-3") != name.npos || name.find("phi3") != name.npos;
  return v;
}

}  // namespace tercet::text
