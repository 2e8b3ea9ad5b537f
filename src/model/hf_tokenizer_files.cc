// tokenizer.json and its companions from GGUF's tokenizer.ggml.* keys.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "model/gguf_tokenizer.h"
#include "model/package_text.h"
#include "model/tokenizer_probe.h"
#include "text/hf_tokenizer.h"
#include "text/pre_tokenizers.h"
#include "text/tokenizer_json.h"
#include "text/vocab.h"

namespace tercet::model {
namespace {

using format::Metadata;
using nlohmann::ordered_json;
using text::TokenType;

constexpr const char* kPrefixMark = "▁";

struct GgufVocab {
  std::vector<std::string_view> tokens;
  std::vector<int64_t> types;

  bool is_added(size_t id) const {
    return types[id] == static_cast<int64_t>(TokenType::kControl) ||
           types[id] == static_cast<int64_t>(TokenType::kUserDefined);
  }
};

Error unsupported(const Metadata& metadata, std::string message) {
  return {ErrorCode::kUnsupported, std::move(message), metadata.source()};
}

Result<GgufVocab> read_vocab(const Metadata& metadata) {
  GgufVocab vocab;
  TERCET_ASSIGN(vocab.tokens, metadata.get_strings("tokenizer.ggml.tokens"));
  if (metadata.has("tokenizer.ggml.token_type")) {
    TERCET_ASSIGN(vocab.types, metadata.get_ints("tokenizer.ggml.token_type"));
  } else {
    vocab.types.assign(vocab.tokens.size(), static_cast<int64_t>(TokenType::kNormal));
  }
  if (vocab.types.size() == vocab.tokens.size()) return vocab;
  return Error{ErrorCode::kCorrupt,
               fmt::format("{} token types for {} tokens", vocab.types.size(), vocab.tokens.size()),
               metadata.source()};
}

ordered_json added_tokens(const GgufVocab& vocab) {
  ordered_json added = ordered_json::array();
  for (size_t id = 0; id < vocab.tokens.size(); ++id) {
    const bool is_unknown = vocab.types[id] == static_cast<int64_t>(TokenType::kUnknown);
    if (!vocab.is_added(id) && !is_unknown) continue;
    const bool special = vocab.types[id] != static_cast<int64_t>(TokenType::kUserDefined);
    added.push_back({{"id", id},
                     {"content", vocab.tokens[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", special}});
  }
  return added;
}

ordered_json vocab_json(const GgufVocab& vocab, bool with_added) {
  ordered_json tokens = ordered_json::object();
  // Appended, since operator[] looks through all that is there.
  auto& object = tokens.get_ref<ordered_json::object_t&>();
  std::set<std::string_view> seen;
  for (size_t id = 0; id < vocab.tokens.size(); ++id)
    if ((with_added || !vocab.is_added(id)) && seen.insert(vocab.tokens[id]).second)
      object.emplace_back(std::string(vocab.tokens[id]), id);
  return tokens;
}

ordered_json byte_level(bool use_regex) {
  return {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", use_regex}};
}

Result<ordered_json> byte_level_tokenizer(const Metadata& metadata, const GgufVocab& vocab) {
  TERCET_ASSIGN(const std::string_view name, metadata.get_string_or("tokenizer.ggml.pre", "default"));
  text::PreTokenizer pre;
  if (!text::find_pre_tokenizer(name, pre) || pre.escapes_spaces || pre.characters)
    return unsupported(metadata, fmt::format("the pre-tokenizer {} cannot be written", format::quote(name)));
  ordered_json steps = ordered_json::array();
  for (const text::SplitPattern& split : pre.splits) {
    if (split.kind != text::PatternKind::kRegex || split.behavior != text::SplitBehavior::kIsolated)
      return unsupported(metadata,
                         fmt::format("the pre-tokenizer {} cannot be written", format::quote(name)));
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", split.pattern}}},
                     {"behavior", "Isolated"},
                     {"invert", split.invert}});
  }
  steps.push_back(byte_level(false));
  TERCET_ASSIGN(const auto merges, metadata.get_strings("tokenizer.ggml.merges"));
  ordered_json merge_list = ordered_json::array();
  for (const std::string_view merge : merges) merge_list.push_back(merge);
  ordered_json root;
  root["normalizer"] = nullptr;
  root["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
  root["post_processor"] = byte_level(false);
  root["decoder"] = byte_level(false);
  root["model"] = {{"type", "BPE"},
                   {"dropout", nullptr},
                   {"unk_token", nullptr},
                   {"fuse_unk", false},
                   {"byte_fallback", false},
                   {"ignore_merges", pre.ignore_merges},
                   {"vocab", vocab_json(vocab, false)},
                   {"merges", std::move(merge_list)}};
  return root;
}

// Every way to make a token of two others, the best scored token first: what SentencePiece would merge.
std::vector<std::string> merges_of(const GgufVocab& vocab, const std::vector<double>& scores) {
  std::map<std::string_view, size_t> ids;
  for (size_t id = 0; id < vocab.tokens.size(); ++id)
    if (vocab.types[id] == static_cast<int64_t>(TokenType::kNormal)) ids.emplace(vocab.tokens[id], id);
  std::vector<size_t> order;
  for (const auto& [token, id] : ids) order.push_back(id);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::pair(-scores[a], a) < std::pair(-scores[b], b); });
  std::vector<std::string> merges;
  for (const size_t id : order) {
    const std::string_view token = vocab.tokens[id];
    std::vector<std::tuple<size_t, size_t, size_t>> splits;
    for (size_t at = 1; at < token.size(); ++at) {
      if ((token[at] & 0xc0) == 0x80) continue;
      const auto left = ids.find(token.substr(0, at)), right = ids.find(token.substr(at));
      if (left != ids.end() && right != ids.end()) splits.emplace_back(left->second, right->second, at);
    }
    std::sort(splits.begin(), splits.end());
    for (const auto& [left, right, at] : splits)
      merges.push_back(std::string(token.substr(0, at)) + " " + std::string(token.substr(at)));
  }
  return merges;
}

Result<ordered_json> sentence_piece_tokenizer(const Metadata& metadata, const GgufVocab& vocab) {
  TERCET_ASSIGN(const auto scores, metadata.get_floats("tokenizer.ggml.scores"));
  TERCET_ASSIGN(const bool prefix, metadata.get_bool_or("tokenizer.ggml.add_space_prefix", true));
  if (scores.size() != vocab.tokens.size())
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} scores for {} tokens", scores.size(), vocab.tokens.size()),
                 metadata.source()};
  const auto replace = [](const char* from, const char* to) {
    return ordered_json{{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
  };
  ordered_json normalizers = ordered_json::array();
  if (prefix) normalizers.push_back({{"type", "Prepend"}, {"prepend", kPrefixMark}});
  normalizers.push_back(replace(" ", kPrefixMark));
  ordered_json decoders = {replace(kPrefixMark, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
  if (prefix) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  const auto unknown =
      std::find(vocab.types.begin(), vocab.types.end(), static_cast<int64_t>(TokenType::kUnknown));
  ordered_json unknown_token;
  if (unknown != vocab.types.end())
    unknown_token = vocab.tokens[static_cast<size_t>(unknown - vocab.types.begin())];
  ordered_json root;
  root["normalizer"] = {{"type", "Sequence"}, {"normalizers", std::move(normalizers)}};
  root["pre_tokenizer"] = nullptr;
  root["post_processor"] = nullptr;
  root["decoder"] = {{"type", "Sequence"}, {"decoders", std::move(decoders)}};
  root["model"] = {{"type", "BPE"},
                   {"dropout", nullptr},
                   {"unk_token", unknown_token},
                   {"fuse_unk", true},
                   {"byte_fallback", true},
                   {"ignore_merges", false},
                   {"vocab", vocab_json(vocab, true)},
                   {"merges", merges_of(vocab, scores)}};
  return root;
}

// The single token that begins, or ends, every text.
ordered_json template_of(const text::Tokenizer& tokenizer, bool with_eos) {
  const auto part = [](const std::string& name) {
    return ordered_json{{"SpecialToken", {{"id", name}, {"type_id", 0}}}};
  };
  ordered_json single = ordered_json::array(), tokens = ordered_json::object();
  const auto add = [&](text::TokenId id) {
    const std::string name(tokenizer.piece(id));
    single.push_back(part(name));
    tokens[name] = {{"id", name}, {"ids", {id}}, {"tokens", {name}}};
  };
  if (tokenizer.adds_bos()) add(*tokenizer.bos());
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  if (with_eos) add(*tokenizer.eos());
  ordered_json pair = single;
  pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 0}}}});
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", tokens}};
}

}  // namespace

Result<TokenizerFiles> tokenizer_from_gguf(const Metadata& metadata) {
  TERCET_ASSIGN(const text::ModelText original, text_from_metadata(metadata, {}));
  TERCET_ASSIGN(const std::string_view kind, metadata.get_string("tokenizer.ggml.model"));
  TERCET_ASSIGN(const GgufVocab vocab, read_vocab(metadata));
  if (kind != "gpt2" && kind != "llama")
    return unsupported(metadata,
                       fmt::format("tokenizers of the kind {} cannot be written", format::quote(kind)));
  TERCET_ASSIGN(ordered_json parts, kind == "gpt2" ? byte_level_tokenizer(metadata, vocab)
                                                   : sentence_piece_tokenizer(metadata, vocab));
  const text::Tokenizer& tokenizer = original.tokenizer;
  const auto with = tokenizer.encode("a", {.add_special = true});
  const bool adds_eos = tokenizer.eos() && !with.empty() && with.back() == *tokenizer.eos();
  if (tokenizer.adds_bos() || adds_eos) parts["post_processor"] = template_of(tokenizer, adds_eos);
  ordered_json root = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  root["added_tokens"] = added_tokens(vocab);
  root.update(parts);

  TokenizerFiles files;
  files.tokenizer = root.dump(-1, ' ', false, ordered_json::error_handler_t::strict) + "\n";
  ordered_json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                         {"clean_up_tokenization_spaces", false}};
  for (const auto& [name, token] : original.special_tokens) config[name] = token;
  files.config = config.dump(2) + "\n";
  if (original.chat_template) files.chat_template = original.chat_template->source();

  TERCET_ASSIGN(text::TokenizerSpec spec, text::tokenizer_spec_from_json(files.tokenizer));
  TERCET_ASSIGN(const text::Tokenizer made, text::Tokenizer::create(std::move(spec)));
  if (const std::string difference = tokenizer_difference(made, tokenizer); !difference.empty())
    return unsupported(metadata, "tokenizer.json would give other tokens: " + difference);
  return files;
}

}  // namespace tercet::model
