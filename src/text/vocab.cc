#include "text/vocab.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>

#include "base/log.h"
#include "text/byte_level.h"
#include "text/fim_texts.h"
#include "text/pre_tokenizers.h"
#include "text/unicode.h"

namespace tercet::text {
namespace {

Error corrupt(const char* key, std::string message) {
  return {ErrorCode::kCorrupt, std::move(message), fmt::format("tokenizer.ggml.{}", key)};
}

// Tokens that llama.cpp (src/llama-vocab.cpp) takes for the end of a turn or text by what they are called.
constexpr std::string_view kEndTexts[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
};
// Fill-in-the-middle tokens: where the file names none, the first that the vocabulary has becomes a control
// token. The last three kinds end a generation as well.
constexpr std::string_view kFimPadTexts[] = {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"};
constexpr std::string_view kFimRepoTexts[] = {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>",
                                              "<reponame>"};
constexpr std::string_view kFimSeparatorTexts[] = {"<|file_sep|>"};

struct FimKind {
  TokenId VocabSpec::*id;
  std::span<const std::string_view> texts;
  bool ends_generation;
};
constexpr FimKind kFimKinds[] = {
    {&VocabSpec::fim_prefix, kFimPrefixTexts, false}, {&VocabSpec::fim_suffix, kFimSuffixTexts, false},
    {&VocabSpec::fim_middle, kFimMiddleTexts, false}, {&VocabSpec::fim_pad, kFimPadTexts, true},
    {&VocabSpec::fim_repo, kFimRepoTexts, true},      {&VocabSpec::fim_separator, kFimSeparatorTexts, true},
};

// Control tokens of a text format that callers must see.
constexpr std::string_view kVisibleTexts[] = {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"};

Status check_sizes(const VocabSpec& v) {
  const size_t size = v.tokens.size();
  if (size == 0) return corrupt("tokens", "the vocabulary is empty");
  if (v.types.size() != size) {
    return corrupt("token_type", fmt::format("{} token types for {} tokens", v.types.size(), size));
  }
  if ((v.kind == VocabKind::kSpm || v.kind == VocabKind::kUnigram) && v.scores.size() != size) {
    return corrupt("scores", fmt::format("{} scores for {} tokens", v.scores.size(), size));
  }
  for (size_t id = 0; id < v.scores.size(); ++id) {
    if (!std::isfinite(v.scores[id]))
      return corrupt("scores", fmt::format("the score of token {} is {}", id, v.scores[id]));
  }
  const std::pair<TokenId, const char*> ids[] = {
      {v.bos, "bos_token_id"},
      {v.eos, "eos_token_id"},
      {v.eot, "eot_token_id"},
      {v.eom, "eom_token_id"},
      {v.unknown, "unknown_token_id"},
      {v.separator, "seperator_token_id"},
      {v.pad, "padding_token_id"},
      {v.fim_pad, "fim_pad_token_id"},
      {v.fim_repo, "fim_rep_token_id"},
      {v.fim_separator, "fim_sep_token_id"},
      {v.fim_prefix, "fim_pre_token_id"},
      {v.fim_suffix, "fim_suf_token_id"},
      {v.fim_middle, "fim_mid_token_id"},
  };
  for (const auto& [id, key] : ids) {
    if (id != kNoToken && (id < 0 || static_cast<size_t>(id) >= size)) {
      return corrupt(key, fmt::format("token {} of a vocabulary of {}", id, size));
    }
  }
  return {};
}

Status check_unique(const VocabSpec& v, const Vocabulary& tokens) {
  for (size_t id = 0; id < v.tokens.size(); ++id) {
    if (v.tokens[id].empty()) continue;
    const TokenId first = tokens.find(v.tokens[id]);
    if (static_cast<size_t>(first) != id) {
      return corrupt("tokens", fmt::format("tokens {} and {} are both {:?}", first, id, v.tokens[id]));
    }
  }
  return {};
}

void add_end_token(TokenId id, std::vector<TokenId>& ends) {
  if (id != kNoToken && std::find(ends.begin(), ends.end(), id) == ends.end()) ends.push_back(id);
}

// Finds the end tokens and corrects types by what tokens are called, as llama.cpp does.
std::vector<TokenId> resolve_special_tokens(VocabSpec& v, const Vocabulary& tokens) {
  std::vector<TokenId> ends = v.more_end_tokens;
  const auto make_control = [&](std::string_view text) {
    const TokenId id = tokens.find(text);
    if (id != kNoToken) v.types[static_cast<size_t>(id)] = TokenType::kControl;
    return id;
  };
  for (const std::string_view text : kEndTexts) add_end_token(make_control(text), ends);
  for (const FimKind& kind : kFimKinds) {
    for (auto text = kind.texts.begin(); v.*kind.id == kNoToken && text != kind.texts.end(); ++text) {
      v.*kind.id = make_control(*text);
    }
    if (kind.ends_generation) add_end_token(v.*kind.id, ends);
  }
  for (const TokenId id : {v.eos, v.eot, v.eom}) add_end_token(id, ends);

  for (const std::string_view text : kVisibleTexts) {
    const TokenId id = tokens.find(text);
    if (id != kNoToken) v.types[static_cast<size_t>(id)] = TokenType::kUserDefined;
  }
  const auto present = [&](std::string_view text) { return tokens.find(text) != kNoToken; };
  const auto drop = [&](std::string_view text, TokenType type) {
    const TokenId id = tokens.find(text);
    if (id == kNoToken) return;
    std::erase(ends, id);
    v.types[static_cast<size_t>(id)] = type;
  };
  const bool calls = present("<|call|>") || present("<|calls|>");
  if (calls && (present("<|return|>") || present("<|flush|>"))) drop("<|end|>", TokenType::kUserDefined);
  if (present("<|tool_response>")) drop("</s>", TokenType::kNormal);
  return ends;
}

Status set_byte_tokens(const VocabSpec& v, std::array<TokenId, 256>& byte_tokens) {
  for (size_t id = 0; id < v.tokens.size(); ++id) {
    const auto byte = parse_byte_token(v.tokens[id]);
    if (byte) byte_tokens[*byte] = static_cast<TokenId>(id);
    if (!byte && v.types[id] == TokenType::kByte) {
      return corrupt("tokens",
                     fmt::format("token {} is of type byte and reads {:?}, expected <0x00> to <0xFF>", id,
                                 v.tokens[id]));
    }
  }
  return {};
}

std::string spaces_for_metaspace(std::string_view text) {
  std::string out;
  for (size_t pos = 0; pos < text.size();) {
    const bool space = text.substr(pos, kMetaspace.size()) == kMetaspace;
    out += space ? ' ' : text[pos];
    pos += space ? kMetaspace.size() : 1;
  }
  return out;
}

// Fills texts, pieces, is_control and added_tokens. `byte_level`: normal tokens are written in the byte
// alphabet.
void set_tokens(const VocabSpec& v, bool byte_level, TokenizerSpec& spec) {
  for (size_t id = 0; id < v.tokens.size(); ++id) {
    const std::string& token = v.tokens[id];
    const TokenType type = v.types[id];
    std::string text = token, piece;
    if (byte_level) text = bytes_of_byte_level(token).value_or("");
    switch (type) {
      case TokenType::kUnknown:
      case TokenType::kControl:
      case TokenType::kUserDefined: piece = token; break;
      case TokenType::kNormal:
        piece = !byte_level ? spaces_for_metaspace(token) : text.empty() ? token : text;
        break;
      case TokenType::kByte: piece = std::string(1, static_cast<char>(*parse_byte_token(token))); break;
      default: break;  // unused tokens show nothing
    }
    const bool hidden = type == TokenType::kControl || type == TokenType::kUnknown;
    if (hidden || type == TokenType::kUserDefined) {
      AddedToken added{static_cast<TokenId>(id), token, hidden};
      // Phi-3's tokenizer: all but these three.
      const bool keeps = token == "<unk>" || token == "<s>" || token == "<|endoftext|>";
      added.rstrip = v.strips_after_special_tokens && !keeps;
      spec.added_tokens.push_back(std::move(added));
    }
    spec.texts.push_back(std::move(text));
    spec.pieces.push_back(std::move(piece));
    spec.is_control.push_back(hidden);
  }
}

Status set_merges(const VocabSpec& v, const Vocabulary& tokens, TokenizerSpec& spec) {
  if (v.merges.empty()) return corrupt("merges", "the merges are missing; byte-pair encoding needs them");
  size_t skipped = 0;
  for (size_t rank = 0; rank < v.merges.size(); ++rank) {
    const std::string_view merge = v.merges[rank];
    const size_t space = merge.find(' ', 1);
    if (space == merge.npos) {
      return corrupt("merges",
                     fmt::format("merge {} is {:?}, expected two tokens and a space between", rank, merge));
    }
    const std::string_view left = merge.substr(0, space), right = merge.substr(space + 1);
    const BpeMerge ids{tokens.find(left), tokens.find(right), tokens.find(std::string(left).append(right))};
    if (ids.left == kNoToken || ids.right == kNoToken || ids.result == kNoToken) {
      ++skipped;
    } else {
      spec.merges.push_back(ids);
    }
  }
  if (skipped > 0) {
    log_warning("tokenizer.ggml.merges: {} of {} merges are ignored: their tokens are not in the vocabulary",
                skipped, v.merges.size());
  }
  return {};
}

NormalizerStep step(NormalizerKind kind, std::string pattern = {}, std::string content = {}) {
  NormalizerStep s;
  s.kind = kind;
  s.pattern = std::move(pattern);
  s.content = std::move(content);
  return s;
}

Status configure_bpe(const VocabSpec& v, const Vocabulary& tokens, TokenizerSpec& spec) {
  PreTokenizer pre;
  if (!find_pre_tokenizer(v.pre_tokenizer, pre)) {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("unknown pre-tokenizer {:?}; known are {}. Choose one by hand if the model's is the same "
                    "under another name",
                    v.pre_tokenizer, fmt::join(pre_tokenizer_names(), ", ")),
        "tokenizer.ggml.pre"};
  }
  spec.model = ModelKind::kBpe;
  spec.splits = std::move(pre.splits);
  spec.bpe.ignore_merges = pre.ignore_merges;
  spec.clean_up_spaces = pre.clean_up_spaces;
  spec.bpe.byte_symbols = !pre.characters;
  spec.bpe.whole_newlines = pre.whole_newlines;
  if (pre.escapes_spaces)
    spec.normalizer.push_back(step(NormalizerKind::kReplace, " ", std::string(kMetaspace)));
  if (pre.characters) TERCET_TRY(set_byte_tokens(v, spec.bpe.byte_tokens));
  if (v.pre_tokenizer == "whitespace" && v.lowercase)
    spec.normalizer.push_back(step(NormalizerKind::kLowercase));
  set_tokens(v, spec.bpe.byte_symbols, spec);
  return set_merges(v, tokens, spec);
}

Status configure_spm(const VocabSpec& v, TokenizerSpec& spec) {
  spec.model = ModelKind::kSpm;
  spec.replace_invalid_bytes = false;  // they become byte tokens
  spec.strip_leading_space = v.add_space_prefix;
  if (v.add_space_prefix) spec.normalizer.push_back(step(NormalizerKind::kPrepend, {}, " "));
  spec.normalizer.push_back(step(NormalizerKind::kReplace, " ", std::string(kMetaspace)));
  TERCET_TRY(set_byte_tokens(v, spec.bpe.byte_tokens));
  set_tokens(v, false, spec);
  spec.scores.assign(v.scores.begin(), v.scores.end());
  return {};
}

Status configure_unigram(const VocabSpec& v, TokenizerSpec& spec) {
  spec.model = ModelKind::kUnigram;
  if (!v.charsmap.empty()) spec.normalizer.push_back(step(NormalizerKind::kCharsmap, {}, v.charsmap));
  if (v.remove_extra_spaces) spec.normalizer.push_back(step(NormalizerKind::kCollapseSpaces));
  if (v.add_space_prefix || v.remove_extra_spaces)
    spec.normalizer.push_back(step(NormalizerKind::kPrepend, {}, " "));
  spec.normalizer.push_back(step(NormalizerKind::kReplace, " ", std::string(kMetaspace)));
  spec.strip_leading_space = v.add_space_prefix;
  set_tokens(v, false, spec);
  spec.scores.assign(v.scores.begin(), v.scores.end());
  for (size_t id = 0; id < v.tokens.size(); ++id) {
    const bool matched = v.types[id] == TokenType::kNormal || v.types[id] == TokenType::kUserDefined ||
                         v.types[id] == TokenType::kUnused;
    if (!matched) spec.texts[id].clear();
    if (v.types[id] == TokenType::kUserDefined) spec.scores[id] = 0;
  }
  return {};
}

Status configure_word_piece(const VocabSpec& v, TokenizerSpec& spec) {
  spec.model = ModelKind::kWordPiece;
  spec.word_begin = std::string(kMetaspace);
  spec.word_continuation.clear();
  spec.max_word_chars = INT32_MAX;
  if (v.strip_accents) spec.normalizer.push_back(step(NormalizerKind::kNfd));
  if (v.strip_accents) spec.normalizer.push_back(step(NormalizerKind::kStripAccents));
  spec.normalizer.push_back(step(NormalizerKind::kBert));
  if (v.lowercase) spec.normalizer.push_back(step(NormalizerKind::kLowercase));
  spec.splits = {{R"(\s+)", PatternKind::kRegex, SplitBehavior::kRemoved}, {R"([\p{P}$+<=>^`|~])"}};
  spec.clean_up_spaces = true;
  spec.strip_leading_space = v.add_space_prefix;
  set_tokens(v, false, spec);
  return {};
}

Status set_prefix_and_suffix(const VocabSpec& v, TokenizerSpec& spec) {
  if (v.add_bos) {
    if (v.bos == kNoToken)
      return corrupt("add_bos_token", "is true, and tokenizer.ggml.bos_token_id is missing");
    spec.prefix.push_back(v.bos);
  }
  if (v.kind == VocabKind::kWordPiece) {
    if (v.separator != kNoToken) spec.suffix.push_back(v.separator);
  } else if (v.add_eos) {
    if (v.eos == kNoToken)
      return corrupt("add_eos_token", "is true, and tokenizer.ggml.eos_token_id is missing");
    spec.suffix.push_back(v.eos);
  }
  return {};
}

}  // namespace

Result<TokenizerSpec> tokenizer_spec(VocabSpec v) {
  TERCET_TRY(check_sizes(v));
  TokenizerSpec spec;
  {
    const Vocabulary tokens(v.tokens);
    TERCET_TRY(check_unique(v, tokens));
    spec.end_tokens = resolve_special_tokens(v, tokens);
    switch (v.kind) {
      case VocabKind::kBpe: TERCET_TRY(configure_bpe(v, tokens, spec)); break;
      case VocabKind::kSpm: TERCET_TRY(configure_spm(v, spec)); break;
      case VocabKind::kUnigram: TERCET_TRY(configure_unigram(v, spec)); break;
      case VocabKind::kWordPiece: TERCET_TRY(configure_word_piece(v, spec)); break;
    }
  }
  TERCET_TRY(set_prefix_and_suffix(v, spec));
  spec.match_order = MatchOrder::kLongestFirst;
  spec.invalid_bytes = InvalidBytes::kKeep;
  spec.bpe.unknown = v.unknown;
  spec.bos = v.bos;
  spec.eos = v.eos;
  spec.pad = v.pad;
  if (v.fim_prefix != kNoToken && v.fim_suffix != kNoToken && v.fim_middle != kNoToken)
    spec.fim = {v.fim_prefix, v.fim_suffix, v.fim_middle};
  return spec;
}

}  // namespace tercet::text
