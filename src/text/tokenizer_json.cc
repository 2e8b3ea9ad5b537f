#include "text/tokenizer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "text/byte_level.h"
#include "text/onig_regex.h"
#include "text/unicode.h"

namespace tercet::text {
namespace {

using nlohmann::json;

constexpr char kGpt2Words[] = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr char kPunctuationChar[] = R"([\p{P}$+<=>^`|~])";

Error corrupt(std::string where, std::string message) {
  return {ErrorCode::kCorrupt, std::move(message), "tokenizer.json: " + std::move(where)};
}

Error unsupported(std::string where, std::string_view what) {
  return {ErrorCode::kUnsupported, fmt::format("{:?} is not supported", what),
          "tokenizer.json: " + std::move(where)};
}

// The value of a field, or null or `otherwise` where it is missing, null or of another type.
const json& child_of(const json& object, const char* key) {
  static const json kNull;
  if (!object.is_object()) return kNull;
  const auto at = object.find(key);
  return at != object.end() ? *at : kNull;
}

std::string string_of(const json& object, const char* key, std::string otherwise = {}) {
  const json& value = child_of(object, key);
  return value.is_string() ? value.get<std::string>() : otherwise;
}

bool bool_of(const json& object, const char* key, bool otherwise) {
  const json& value = child_of(object, key);
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

// Calls visit(step) for the step or, where it is a "Sequence", for its parts under `parts_key`, in order. A
// sequence in a sequence is opened too, to a depth that no real file reaches.
template <class Visit>
Status for_each_step(const json& step, const char* parts_key, const char* where, const Visit& visit,
                     int depth = 0) {
  if (step.is_null()) return {};
  if (!step.is_object()) return corrupt(where, "expected an object");
  if (string_of(step, "type") != "Sequence") return visit(step);
  if (depth > 8) return corrupt(where, "sequences are nested more than 8 deep");
  const json& parts = child_of(step, parts_key);
  if (!parts.is_array()) return corrupt(where, fmt::format("a Sequence without an array \"{}\"", parts_key));
  for (const json& part : parts) TERCET_TRY(for_each_step(part, parts_key, where, visit, depth + 1));
  return {};
}

// {"String": "..."} or {"Regex": "..."}
Status read_pattern(const json& step, const char* where, std::string& pattern, bool& is_regex) {
  const json& holder = child_of(step, "pattern");
  const json& literal = child_of(holder, "String");
  const json& regex = child_of(holder, "Regex");
  if (!literal.is_string() && !regex.is_string())
    return corrupt(where, "a pattern is neither a String nor a Regex");
  is_regex = regex.is_string();
  pattern = (is_regex ? regex : literal).get<std::string>();
  if (!is_regex) return {};
  auto translated = pcre_of_onig(pattern);
  if (!translated.ok())
    return Error{translated.error().code, translated.error().message,
                 fmt::format("tokenizer.json: {}", where)};
  pattern = *std::move(translated);
  return {};
}

Result<SplitBehavior> read_behavior(const json& step, const char* where, const char* otherwise) {
  const std::string name = string_of(step, "behavior", otherwise);
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return unsupported(std::string(where) + ".behavior", name);
}

Result<std::string> decode_base64(std::string_view text, const char* where) {
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    const std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t value = alphabet.find(c);
    if (value == alphabet.npos)
      return corrupt(where, fmt::format("{:?} is no base64", std::string_view(&c, 1)));
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count >= 8) out += static_cast<char>(bits >> (count -= 8));
  }
  return out;
}

// What a Metaspace writes for a space: one character.
Result<std::string> read_replacement(const json& step, const char* where) {
  std::string mark = string_of(step, "replacement", std::string(kMetaspace));
  if (!mark.empty() && decode_utf8(mark, 0).length == mark.size()) return mark;
  return corrupt(fmt::format("{}.replacement", where),
                 fmt::format("expected one character, found {:?}", mark));
}

NormalizerStep step_of(NormalizerKind kind, std::string pattern = {}, std::string content = {}) {
  NormalizerStep step;
  step.kind = kind;
  step.pattern = std::move(pattern);
  step.content = std::move(content);
  return step;
}

// One of the four parts of the file at a time; `file` is the whole.
class Reader {
 public:
  explicit Reader(const json& file) : file_(file) {}

  Result<TokenizerSpec> read() {
    if (!file_.is_object()) return corrupt("", "expected an object");
    for (const char* ignored : {"truncation", "padding"}) {
      if (!child_of(file_, ignored).is_null()) log_info("tokenizer.json: {} is ignored", ignored);
    }
    TERCET_TRY(for_each_step(child_of(file_, "normalizer"), "normalizers", "normalizer",
                             [this](const json& step) { return read_normalizer(step); }));
    TERCET_TRY(for_each_step(child_of(file_, "pre_tokenizer"), "pretokenizers", "pre_tokenizer",
                             [this](const json& step) { return read_pre_tokenizer(step); }));
    TERCET_TRY(read_model());
    for (const std::string& token : tokens_) is_of_model_.push_back(!token.empty());
    TERCET_TRY(read_added_tokens());
    TERCET_TRY(for_each_step(child_of(file_, "post_processor"), "processors", "post_processor",
                             [this](const json& step) { return read_post_processor(step); }));
    TERCET_TRY(read_decoder());
    finish();
    return std::move(spec_);
  }

 private:
  Status read_normalizer(const json& step);
  Status read_bert_normalizer(const json& step);
  Status read_pre_tokenizer(const json& step);
  Status read_metaspace(const json& step);
  Status read_model();
  Status read_vocabulary(const json& vocab);
  Status read_unigram_vocabulary(const json& vocab);
  Status read_bpe(const json& model);
  Status read_merges(const json& merges);
  Status read_added_tokens();
  Status read_post_processor(const json& step);
  Status read_template(const json& step);
  Status read_decoder();
  Status read_decoder_step(const json& step);
  Status set_token(const std::string& text, int64_t id, size_t limit);
  std::string word_piece(const std::string& token) const;
  void finish();

  void add_rewrite(NormalizerStep step) { spec_.rewrites.push_back({spec_.splits.size(), std::move(step)}); }
  void add_split(std::string pattern, PatternKind kind = PatternKind::kRegex,
                 SplitBehavior behavior = SplitBehavior::kIsolated, bool invert = false) {
    spec_.splits.push_back({std::move(pattern), kind, behavior, invert});
  }

  const json& file_;
  TokenizerSpec spec_;
  std::vector<std::string> tokens_;   // as the file writes them, by id
  std::vector<uint8_t> is_of_model_;  // and not only an added token
  bool byte_level_ = false;
  // The decoder:
  bool decodes_byte_level_ = false, decodes_bytes_ = false, fused_ = false, joins_with_spaces_ = false;
  bool word_pieces_ = false, cleans_up_ = false;
  std::string word_piece_prefix_;
  std::string dropped_at_first_;  // Metaspace: what becomes nothing in the first token
  std::vector<std::pair<std::string, std::string>> replacements_;
};

Status Reader::read_normalizer(const json& step) {
  const std::string type = string_of(step, "type");
  const std::pair<const char*, NormalizerKind> plain[] = {
      {"NFC", NormalizerKind::kNfc},
      {"NFD", NormalizerKind::kNfd},
      {"NFKC", NormalizerKind::kNfkc},
      {"NFKD", NormalizerKind::kNfkd},
      {"Lowercase", NormalizerKind::kLowercase},
      {"StripAccents", NormalizerKind::kStripAccents},
  };
  for (const auto& [name, kind] : plain) {
    if (type == name) return spec_.normalizer.push_back(step_of(kind)), Status{};
  }
  if (type == "Replace") {
    NormalizerStep replace = step_of(NormalizerKind::kReplace, {}, string_of(step, "content"));
    TERCET_TRY(read_pattern(step, "normalizer.pattern", replace.pattern, replace.is_regex));
    spec_.normalizer.push_back(std::move(replace));
  } else if (type == "Prepend") {
    spec_.normalizer.push_back(step_of(NormalizerKind::kPrepend, {}, string_of(step, "prepend")));
  } else if (type == "Strip") {
    if (bool_of(step, "strip_left", true)) spec_.normalizer.push_back(step_of(NormalizerKind::kStripLeft));
    if (bool_of(step, "strip_right", true)) spec_.normalizer.push_back(step_of(NormalizerKind::kStripRight));
  } else if (type == "BertNormalizer") {
    return read_bert_normalizer(step);
  } else if (type == "Precompiled") {
    TERCET_ASSIGN(std::string map,
                  decode_base64(string_of(step, "precompiled_charsmap"), "normalizer.precompiled_charsmap"));
    if (!map.empty()) spec_.normalizer.push_back(step_of(NormalizerKind::kCharsmap, {}, std::move(map)));
  } else {
    return unsupported("normalizer.type", type);
  }
  return {};
}

Status Reader::read_bert_normalizer(const json& step) {
  NormalizerStep bert = step_of(NormalizerKind::kBert);
  bert.controls_first = true;
  bert.clean_text = bool_of(step, "clean_text", true);
  bert.handle_chinese_chars = bool_of(step, "handle_chinese_chars", true);
  spec_.normalizer.push_back(bert);
  const bool lower = bool_of(step, "lowercase", true);
  if (bool_of(step, "strip_accents", lower)) {
    spec_.normalizer.push_back(step_of(NormalizerKind::kNfd));
    spec_.normalizer.push_back(step_of(NormalizerKind::kStripAccents));
  }
  if (lower) spec_.normalizer.push_back(step_of(NormalizerKind::kLowercase));
  return {};
}

Status Reader::read_metaspace(const json& step) {
  TERCET_ASSIGN(const std::string mark, read_replacement(step, "pre_tokenizer"));
  const std::string scheme =
      string_of(step, "prepend_scheme", bool_of(step, "add_prefix_space", true) ? "always" : "never");
  add_rewrite(step_of(NormalizerKind::kReplace, " ", mark));
  if (scheme != "never") {
    NormalizerStep prepend = step_of(NormalizerKind::kPrependUnless, {}, mark);
    prepend.only_first = scheme == "first";
    add_rewrite(std::move(prepend));
  }
  if (bool_of(step, "split", true)) add_split(mark, PatternKind::kLiteral, SplitBehavior::kMergedWithNext);
  return {};
}

Status Reader::read_pre_tokenizer(const json& step) {
  const std::string type = string_of(step, "type");
  // What follows would see the text in the byte alphabet.
  if (byte_level_) return unsupported("pre_tokenizer", type + " behind ByteLevel");
  if (type == "ByteLevel") {
    byte_level_ = true;
    if (bool_of(step, "add_prefix_space", true))
      add_rewrite(step_of(NormalizerKind::kPrependUnless, {}, " "));
    if (bool_of(step, "use_regex", true)) add_split(kGpt2Words);
  } else if (type == "Split") {
    std::string pattern;
    bool is_regex = false;
    TERCET_TRY(read_pattern(step, "pre_tokenizer.pattern", pattern, is_regex));
    TERCET_ASSIGN(const SplitBehavior behavior, read_behavior(step, "pre_tokenizer", ""));
    add_split(std::move(pattern), is_regex ? PatternKind::kRegex : PatternKind::kLiteral, behavior,
              bool_of(step, "invert", false));
  } else if (type == "Digits") {
    add_split(bool_of(step, "individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)");
  } else if (type == "Punctuation") {
    TERCET_ASSIGN(const SplitBehavior behavior, read_behavior(step, "pre_tokenizer", "Isolated"));
    add_split(kPunctuationChar, PatternKind::kRegex, behavior);
  } else if (type == "Whitespace") {
    // Rust's \w has the two joiners.
    const std::string word = std::string(kWordMembers) + R"(\x{200C}\x{200D})";
    add_split(fmt::format(R"([{0}]+|[^{0}\s]+)", word), PatternKind::kRegex, SplitBehavior::kRemoved, true);
  } else if (type == "WhitespaceSplit") {
    add_split(R"(\s)", PatternKind::kRegex, SplitBehavior::kRemoved);
  } else if (type == "BertPreTokenizer") {
    add_split(R"(\s)", PatternKind::kRegex, SplitBehavior::kRemoved);
    add_split(kPunctuationChar);
  } else if (type == "CharDelimiterSplit") {
    add_split(string_of(step, "delimiter"), PatternKind::kLiteral, SplitBehavior::kRemoved);
  } else if (type == "Metaspace") {
    return read_metaspace(step);
  } else {
    return unsupported("pre_tokenizer.type", type);
  }
  return {};
}

// `limit` bounds the ids by the number of entries, so that no id makes the lists large.
Status Reader::set_token(const std::string& text, int64_t id, size_t limit) {
  if (id < 0 || static_cast<uint64_t>(id) >= limit) {
    return corrupt("vocab", fmt::format("token {:?} has the id {}, expected 0 to {}", text, id, limit - 1));
  }
  const auto i = static_cast<size_t>(id);
  if (i >= tokens_.size()) tokens_.resize(i + 1);
  if (!tokens_[i].empty() && tokens_[i] != text) {
    return corrupt("vocab", fmt::format("tokens {:?} and {:?} both have the id {}", tokens_[i], text, id));
  }
  tokens_[i] = text;
  return {};
}

Status Reader::read_vocabulary(const json& vocab) {
  if (!vocab.is_object() || vocab.empty())
    return corrupt("model.vocab", "expected an object of tokens and ids");
  const size_t limit = 2 * vocab.size() + 65536;
  for (const auto& [text, id] : vocab.items()) {
    if (!id.is_number_integer())
      return corrupt("model.vocab", fmt::format("the id of {:?} is no integer", text));
    TERCET_TRY(set_token(text, id.get<int64_t>(), limit));
  }
  return {};
}

Status Reader::read_unigram_vocabulary(const json& vocab) {
  if (!vocab.is_array() || vocab.empty())
    return corrupt("model.vocab", "expected an array of [token, score]");
  for (const json& entry : vocab) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number()) {
      return corrupt("model.vocab", fmt::format("entry {} is no [token, score]", tokens_.size()));
    }
    tokens_.push_back(entry[0].get<std::string>());
    spec_.scores.push_back(entry[1].get<double>());
  }
  return {};
}

Status Reader::read_model() {
  const json& model = child_of(file_, "model");
  if (!model.is_object()) return corrupt("model", "missing");
  std::string type = string_of(model, "type");
  if (type.empty() && model.contains("merges")) type = "BPE";  // files before the type was written
  if (type == "Unigram") {
    spec_.model = ModelKind::kUnigram;
    TERCET_TRY(read_unigram_vocabulary(child_of(model, "vocab")));
    const json& unknown = child_of(model, "unk_id");
    if (unknown.is_number_integer()) {
      const auto id = unknown.get<int64_t>();
      if (id < 0 || static_cast<uint64_t>(id) >= tokens_.size())
        return corrupt("model.unk_id", "is outside the vocabulary");
      spec_.bpe.unknown = static_cast<TokenId>(id);
    }
  } else if (type == "WordPiece") {
    spec_.model = ModelKind::kWordPiece;
    TERCET_TRY(read_vocabulary(child_of(model, "vocab")));
    spec_.word_continuation = string_of(model, "continuing_subword_prefix", "##");
    const json& longest = child_of(model, "max_input_chars_per_word");
    if (longest.is_number_integer()) {
      spec_.max_word_chars = static_cast<int>(std::clamp<int64_t>(longest.get<int64_t>(), 1, INT32_MAX));
    }
  } else if (type == "BPE") {
    return read_bpe(model);
  } else {
    return unsupported("model.type", type);
  }
  return {};
}

Status Reader::read_bpe(const json& model) {
  spec_.model = ModelKind::kBpe;
  TERCET_TRY(read_vocabulary(child_of(model, "vocab")));
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!string_of(model, key).empty())
      return unsupported(std::string("model.") + key, string_of(model, key));
  }
  if (child_of(model, "dropout").is_number()) log_info("tokenizer.json: model.dropout is ignored");
  spec_.bpe.byte_symbols = byte_level_;
  spec_.bpe.ignore_merges = bool_of(model, "ignore_merges", false);
  spec_.bpe.fuse_unknown = bool_of(model, "fuse_unk", false);
  return read_merges(child_of(model, "merges"));
}

Status Reader::read_merges(const json& merges) {
  if (!merges.is_array()) return corrupt("model.merges", "missing, or no array");
  const Vocabulary tokens(tokens_);
  spec_.merges.reserve(merges.size());
  for (const json& merge : merges) {
    std::string left, right;
    if (merge.is_string()) {
      const auto& text = merge.get_ref<const std::string&>();
      const size_t space = text.find(' ');
      if (space != text.npos) left = text.substr(0, space), right = text.substr(space + 1);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      left = merge[0].get<std::string>(), right = merge[1].get<std::string>();
    }
    const BpeMerge ids{tokens.find(left), tokens.find(right), tokens.find(left + right)};
    if (ids.left == kNoToken || ids.right == kNoToken || ids.result == kNoToken) {
      return corrupt("model.merges",
                     fmt::format("merge {}, {} and {}, is not of tokens in the vocabulary",
                                 spec_.merges.size(), fmt::format("{:?}", left), fmt::format("{:?}", right)));
    }
    spec_.merges.push_back(ids);
  }
  return {};
}

Status Reader::read_added_tokens() {
  const json& added = child_of(file_, "added_tokens");
  if (added.is_null()) return {};
  if (!added.is_array()) return corrupt("added_tokens", "expected an array");
  const size_t limit = 2 * (tokens_.size() + added.size()) + 65536;
  for (const json& entry : added) {
    const json& id = child_of(entry, "id");
    if (!child_of(entry, "content").is_string() || !id.is_number_integer()) {
      return corrupt("added_tokens",
                     fmt::format("entry {} has no content or no id", spec_.added_tokens.size()));
    }
    AddedToken token;
    token.content = string_of(entry, "content");
    token.special = bool_of(entry, "special", false);
    token.lstrip = bool_of(entry, "lstrip", false);
    token.rstrip = bool_of(entry, "rstrip", false);
    token.single_word = bool_of(entry, "single_word", false);
    token.normalized = bool_of(entry, "normalized", !token.special);
    TERCET_TRY(set_token(token.content, id.get<int64_t>(), limit));
    token.id = static_cast<TokenId>(id.get<int64_t>());
    spec_.added_tokens.push_back(std::move(token));
  }
  return {};
}

Status Reader::read_template(const json& step) {
  const json& items = child_of(step, "single");
  if (!items.is_array()) return corrupt("post_processor.single", "expected an array");
  std::vector<TokenId> before, after;
  bool behind_text = false;
  for (const json& item : items) {
    if (!child_of(item, "Sequence").is_null()) {
      behind_text = true;
      continue;
    }
    const std::string name = string_of(child_of(item, "SpecialToken"), "id");
    const json& ids = child_of(child_of(child_of(step, "special_tokens"), name.c_str()), "ids");
    if (!ids.is_array())
      return corrupt("post_processor.special_tokens", fmt::format("{:?} has no ids", name));
    for (const json& id : ids) {
      if (!id.is_number_integer())
        return corrupt("post_processor.special_tokens", fmt::format("{:?} has no ids", name));
      (behind_text ? after : before).push_back(id.get<TokenId>());
    }
  }
  spec_.prefix.insert(spec_.prefix.begin(), before.begin(), before.end());
  spec_.suffix.insert(spec_.suffix.end(), after.begin(), after.end());
  return {};
}

Status Reader::read_post_processor(const json& step) {
  const std::string type = string_of(step, "type");
  if (type == "ByteLevel") return {};  // concerns offsets only
  if (type == "TemplateProcessing") return read_template(step);
  if (type != "BertProcessing" && type != "RobertaProcessing")
    return unsupported("post_processor.type", type);
  for (const char* key : {"cls", "sep"}) {
    const json& pair = child_of(step, key);
    if (!pair.is_array() || pair.size() != 2 || !pair[1].is_number_integer()) {
      return corrupt(std::string("post_processor.") + key, "expected [token, id]");
    }
    (key[0] == 'c' ? spec_.prefix : spec_.suffix).push_back(pair[1].get<TokenId>());
  }
  return {};
}

Status Reader::read_decoder_step(const json& step) {
  const std::string type = string_of(step, "type");
  if (type == "ByteLevel") {
    decodes_byte_level_ = true;
    spec_.invalid_bytes = InvalidBytes::kReplaceSequences;
  } else if (type == "ByteFallback") {
    decodes_bytes_ = true;
    spec_.invalid_bytes = InvalidBytes::kReplaceByteRuns;
  } else if (type == "Fuse") {
    fused_ = true;
  } else if (type == "Replace") {
    std::string pattern;
    bool is_regex = false;
    TERCET_TRY(read_pattern(step, "decoder.pattern", pattern, is_regex));
    if (is_regex || pattern.empty()) return unsupported("decoder.pattern", pattern);
    replacements_.emplace_back(pattern, string_of(step, "content"));
  } else if (type == "Strip") {
    const auto count = [&](const char* key) {
      const json& value = child_of(step, key);
      return value.is_number_integer() ? value.get<int64_t>() : 0;
    };
    const bool nothing = count("start") == 0 && count("stop") == 0;
    const bool one_space =
        string_of(step, "content") == " " && count("start") == 1 && count("stop") == 0 && fused_;
    if (!nothing && !one_space) return unsupported("decoder", "Strip of more than one leading space");
    spec_.strip_leading_space = one_space;
  } else if (type == "Metaspace") {
    TERCET_ASSIGN(std::string mark, read_replacement(step, "decoder"));
    replacements_.emplace_back(std::move(mark), " ");
    const std::string scheme =
        string_of(step, "prepend_scheme", bool_of(step, "add_prefix_space", true) ? "always" : "never");
    if (scheme != "never") dropped_at_first_ = replacements_.back().first;
  } else if (type == "WordPiece") {
    word_piece_prefix_ = string_of(step, "prefix", "##");
    word_pieces_ = true;
    cleans_up_ = bool_of(step, "cleanup", true);
  } else {
    return unsupported("decoder.type", type);
  }
  return {};
}

Status Reader::read_decoder() {
  const json& decoder = child_of(file_, "decoder");
  if (decoder.is_null()) joins_with_spaces_ = true;
  TERCET_TRY(for_each_step(decoder, "decoders", "decoder",
                           [this](const json& step) { return read_decoder_step(step); }));
  if (joins_with_spaces_) spec_.strip_leading_space = true;
  return {};
}

std::string replace_all(std::string_view text, std::string_view pattern, std::string_view content) {
  std::string out;
  for (size_t pos = 0; pos < text.size();) {
    const bool found = text.substr(pos).starts_with(pattern);
    if (found) {
      out += content;
    } else {
      out += text[pos];
    }
    pos += found ? pattern.size() : 1;
  }
  return out;
}

// What the WordPiece decoder cleans up in each token, in this order.
std::string clean_up(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kChanges[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [pattern, content] : kChanges) text = replace_all(text, pattern, content);
  return text;
}

// A token behind others.
std::string Reader::word_piece(const std::string& token) const {
  const bool continues = !word_piece_prefix_.empty() && token.starts_with(word_piece_prefix_);
  std::string piece = continues ? token.substr(word_piece_prefix_.size()) : fmt::format(" {}", token);
  return cleans_up_ ? clean_up(std::move(piece)) : piece;
}

void Reader::finish() {
  const json& model = child_of(file_, "model");
  const std::string unknown = string_of(model, "unk_token");
  const bool byte_fallback = bool_of(model, "byte_fallback", false);
  for (size_t id = 0; id < tokens_.size(); ++id) {
    const std::string& token = tokens_[id];
    if (!unknown.empty() && token == unknown) spec_.bpe.unknown = static_cast<TokenId>(id);
    const auto byte = parse_byte_token(token);
    if (byte && byte_fallback) spec_.bpe.byte_tokens[*byte] = static_cast<TokenId>(id);
    const bool is_of_model = id < is_of_model_.size() && is_of_model_[id] != 0;
    std::string text = byte_level_ ? bytes_of_byte_level(token).value_or("") : token;
    spec_.texts.push_back(is_of_model ? std::move(text) : "");

    std::string piece = token;
    if (decodes_byte_level_) piece = bytes_of_byte_level(token).value_or(token);
    for (const auto& [pattern, content] : replacements_) piece = replace_all(piece, pattern, content);
    if (joins_with_spaces_) piece = fmt::format(" {}", token);
    if (word_pieces_) piece = word_piece(token);
    if (word_pieces_) spec_.first_pieces.push_back(cleans_up_ ? clean_up(token) : token);
    if (!dropped_at_first_.empty()) spec_.first_pieces.push_back(replace_all(token, dropped_at_first_, ""));
    const bool is_byte = byte && decodes_bytes_;
    if (is_byte) piece = std::string(1, static_cast<char>(*byte));
    spec_.pieces.push_back(std::move(piece));
    spec_.is_byte.push_back(is_byte);
  }
  spec_.is_control.assign(tokens_.size(), 0);
  for (const AddedToken& token : spec_.added_tokens)
    spec_.is_control[static_cast<size_t>(token.id)] = token.special;
  if (spec_.model == ModelKind::kUnigram) spec_.scores.resize(tokens_.size(), 0.0);
  spec_.match_order = MatchOrder::kLeftmostLongest;
}

}  // namespace

Result<TokenizerSpec> tokenizer_spec_from_json(std::string_view text) {
  const json file = json::parse(text, nullptr, false);
  if (file.is_discarded()) return corrupt("", "is no JSON");
  return Reader(file).read();
}

}  // namespace tercet::text
