#include "text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <variant>

#include "text/spm.h"
#include "text/unicode.h"
#include "text/unigram.h"
#include "text/word_piece.h"

namespace tercet::text {
namespace {

// Symbols are counted in 32 bits; a longer word is cut.
constexpr size_t kMaxWordBytes = size_t{1} << 30;

using Model = std::variant<BpeModel, SpmModel, UnigramModel, WordPieceModel>;

Error invalid(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message), "tokenizer"}; }

Status check_ids(const TokenizerSpec& spec) {
  const auto size = static_cast<TokenId>(spec.texts.size());
  const auto check = [&](TokenId id, const char* what, bool optional) -> Status {
    if ((id >= 0 && id < size) || (optional && id == kNoToken)) return {};
    return invalid(fmt::format("{} is token {}, the vocabulary has {} tokens", what, id, size));
  };
  TERCET_TRY(check(spec.bos, "bos", true));
  TERCET_TRY(check(spec.eos, "eos", true));
  TERCET_TRY(check(spec.pad, "pad", true));
  for (const TokenId id : {spec.fim.prefix, spec.fim.suffix, spec.fim.middle})
    TERCET_TRY(check(id, "a token for filling in the middle", true));
  TERCET_TRY(check(spec.bpe.unknown, "the unknown token", true));
  for (const TokenId id : spec.bpe.byte_tokens) TERCET_TRY(check(id, "a byte token", true));
  for (const TokenId id : spec.end_tokens) TERCET_TRY(check(id, "an end token", false));
  for (const TokenId id : spec.prefix) TERCET_TRY(check(id, "a token of the prefix", false));
  for (const TokenId id : spec.suffix) TERCET_TRY(check(id, "a token of the suffix", false));
  for (const AddedToken& token : spec.added_tokens) TERCET_TRY(check(token.id, "an added token", false));
  for (const BpeMerge& merge : spec.merges) {
    TERCET_TRY(check(merge.left, "the left part of a merge", false));
    TERCET_TRY(check(merge.right, "the right part of a merge", false));
    TERCET_TRY(check(merge.result, "the result of a merge", false));
  }
  return {};
}

Status check_spec(const TokenizerSpec& spec) {
  const size_t size = spec.texts.size();
  if (size == 0) return invalid("the vocabulary is empty");
  if (size > size_t{1} << 30)
    return invalid(fmt::format("the vocabulary has {} tokens, at most 2^30 are possible", size));
  if (spec.pieces.size() != size || spec.is_control.size() != size ||
      (!spec.first_pieces.empty() && spec.first_pieces.size() != size)) {
    return invalid(
        fmt::format("{} token texts, {} pieces and {} control flags: all must be one for each token", size,
                    spec.pieces.size(), spec.is_control.size()));
  }
  const bool scored = spec.model == ModelKind::kSpm || spec.model == ModelKind::kUnigram;
  if (scored && spec.scores.size() != size) {
    return invalid(fmt::format("{} scores for {} tokens", spec.scores.size(), size));
  }
  return check_ids(spec);
}

// Drops the space before . , ? ! ; around a lone apostrophe; before 's 'm 're 've, as llama.cpp cleans up.
std::string clean_up_spaces(std::string_view text) {
  std::string punctuation;
  for (const char c : text) {
    if (!punctuation.empty() && punctuation.back() == ' ' && (c == '?' || c == '!' || c == '.' || c == ',')) {
      punctuation.pop_back();
    }
    punctuation += c;
  }
  std::string lone;
  for (size_t i = 0; i < punctuation.size(); ++i) {
    const bool is_lone = i > 0 && punctuation[i] == '\'' && punctuation[i - 1] == ' ' &&
                         i + 1 < punctuation.size() && punctuation[i + 1] == ' ';
    if (is_lone) {
      lone.pop_back();
      lone += '\'';
      ++i;
    } else {
      lone += punctuation[i];
    }
  }
  std::string out;
  for (size_t i = 0; i < lone.size(); ++i) {
    const std::string_view rest = std::string_view(lone).substr(i);
    const bool contraction = rest.starts_with("'s") || rest.starts_with("'m") || rest.starts_with("'re") ||
                             rest.starts_with("'ve");
    if (contraction && !out.empty() && out.back() == ' ') out.pop_back();
    out += lone[i];
  }
  return out;
}

}  // namespace

struct Tokenizer::Data {
  Vocabulary vocabulary;
  StringTable pieces, first_pieces;
  std::vector<uint8_t> is_control;
  std::vector<uint8_t> is_byte;
  std::vector<uint8_t> is_end;
  std::vector<TokenId> end_tokens;
  AddedTokenMatcher added, normalized_added;
  Normalizer normalizer;
  std::vector<Splitter> splits;
  std::vector<Normalizer> rewrites;  // before each of the splits and behind them
  std::optional<Model> model;
  std::vector<TokenId> prefix, suffix;
  bool replace_invalid_bytes, strip_leading_space, clean_up_spaces;
  InvalidBytes invalid_bytes;
  TokenId bos, eos, pad;
  FimTokens fim;

  explicit Data(TokenizerSpec&& spec);
  void encode_text(std::string_view text, bool is_first, const SpecialPlaces& special, MergeScratch& scratch,
                   std::vector<TokenId>& out) const;
  void encode_words(std::string_view text, bool is_first, MergeScratch& scratch,
                    std::vector<TokenId>& out) const;
  std::string decode_byte_runs(std::span<const TokenId> tokens, DecodeOptions options) const;
};

Tokenizer::Data::Data(TokenizerSpec&& spec)
    : vocabulary(spec.texts),
      pieces(spec.pieces),
      first_pieces(spec.first_pieces),
      is_control(std::move(spec.is_control)),
      is_byte(std::move(spec.is_byte)),
      is_end(spec.texts.size()),
      end_tokens(std::move(spec.end_tokens)),
      prefix(std::move(spec.prefix)),
      suffix(std::move(spec.suffix)),
      replace_invalid_bytes(spec.replace_invalid_bytes),
      strip_leading_space(spec.strip_leading_space),
      clean_up_spaces(spec.clean_up_spaces),
      invalid_bytes(spec.invalid_bytes),
      bos(spec.bos),
      eos(spec.eos),
      pad(spec.pad),
      fim(spec.fim) {
  for (const TokenId id : end_tokens) is_end[static_cast<size_t>(id)] = 1;
  is_byte.resize(spec.texts.size());
  std::vector<AddedToken> in_text, in_normalized;
  for (AddedToken& token : spec.added_tokens) {
    (token.normalized ? in_normalized : in_text).push_back(std::move(token));
  }
  added = AddedTokenMatcher(std::move(in_text), spec.match_order);
  normalized_added = AddedTokenMatcher(std::move(in_normalized), spec.match_order);
  switch (spec.model) {
    case ModelKind::kBpe:
      model.emplace(std::in_place_type<BpeModel>, vocabulary, spec.merges, spec.bpe);
      break;
    case ModelKind::kSpm:
      model.emplace(std::in_place_type<SpmModel>, vocabulary, spec.scores, spec.bpe.byte_tokens,
                    spec.bpe.unknown);
      break;
    case ModelKind::kUnigram:
      model.emplace(std::in_place_type<UnigramModel>, vocabulary, spec.scores, spec.bpe.byte_tokens,
                    spec.bpe.unknown);
      break;
    case ModelKind::kWordPiece:
      model.emplace(std::in_place_type<WordPieceModel>, vocabulary, spec.word_begin, spec.word_continuation,
                    spec.max_word_chars, spec.bpe.unknown);
      break;
  }
}

Result<Tokenizer> Tokenizer::create(TokenizerSpec spec) {
  TERCET_TRY(check_spec(spec));
  TERCET_ASSIGN(Normalizer normalizer, Normalizer::create(spec.normalizer));
  std::vector<Splitter> splits;
  for (const SplitPattern& pattern : spec.splits) {
    TERCET_ASSIGN(Splitter splitter, Splitter::create(pattern));
    splits.push_back(std::move(splitter));
  }
  std::vector<std::vector<NormalizerStep>> rewrite_steps(splits.size() + 1);
  for (PieceRewrite& rewrite : spec.rewrites)
    rewrite_steps[std::min(rewrite.before_split, splits.size())].push_back(std::move(rewrite.step));
  std::vector<Normalizer> rewrites;
  for (std::vector<NormalizerStep>& steps : rewrite_steps) {
    TERCET_ASSIGN(Normalizer rewrite, Normalizer::create(std::move(steps)));
    rewrites.push_back(std::move(rewrite));
  }
  // What is searched for in the normalized text is normalized itself.
  for (AddedToken& token : spec.added_tokens) {
    if (token.normalized) token.content = normalizer.apply(token.content, false);
  }
  auto data = std::make_shared<Data>(std::move(spec));
  data->normalizer = std::move(normalizer);
  data->rewrites = std::move(rewrites);
  data->splits = std::move(splits);
  return Tokenizer(std::move(data));
}

void Tokenizer::Data::encode_words(std::string_view text, bool is_first, MergeScratch& scratch,
                                   std::vector<TokenId>& out) const {
  std::deque<std::string> rewritten;
  std::vector<std::string_view> words = {text}, next;
  for (size_t i = 0; i < rewrites.size(); ++i) {
    if (!rewrites[i].empty()) {
      for (std::string_view& word : words) {
        word = rewritten.emplace_back(rewrites[i].apply(word, is_first));
        is_first = false;
      }
    }
    if (i == splits.size() || words.empty()) break;
    const char* begin = words.front().data();
    next.clear();
    for (const std::string_view word : words) splits[i].split(word, next);
    std::swap(words, next);
    is_first = is_first && !words.empty() && words.front().data() == begin;
    scratch.steps += words.size();
  }
  for (std::string_view word : words) {
    while (!word.empty()) {
      const std::string_view part = word.substr(0, kMaxWordBytes);
      std::visit([&](const auto& m) { m.encode(part, scratch, out); }, *model);
      word.remove_prefix(part.size());
    }
  }
}

void Tokenizer::Data::encode_text(std::string_view text, bool is_first, const SpecialPlaces& special,
                                  MergeScratch& scratch, std::vector<TokenId>& out) const {
  std::string normalized;
  const std::string_view original = text;
  if (!normalizer.empty()) text = normalized = normalizer.apply(text, is_first);
  if (normalized_added.empty()) return encode_words(text, is_first, scratch, out);
  std::vector<Fragment> fragments;
  if (normalizer.empty()) {
    normalized_added.split(text, special, fragments);
  } else {
    const bool divided = normalized_added.has_special() && special.divide(original);
    normalized_added.split(text, SpecialPlaces(divided || special.contain(original)), fragments);
    // Nobody knows where in the normalized text the spans are.
    const bool unclear = divided && std::any_of(fragments.begin(), fragments.end(),
                                                [](const Fragment& f) { return f.id != kNoToken; });
    if (unclear) {
      return special.for_each_piece(original, [&](std::string_view piece) {
        encode_text(piece, is_first && piece.data() == original.data(), special, scratch, out);
      });
    }
  }
  for (const Fragment& fragment : fragments) {
    if (fragment.id != kNoToken) {
      out.push_back(fragment.id);
    } else {
      encode_words(fragment.text, is_first && fragment.text.data() == text.data(), scratch, out);
    }
  }
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, EncodeOptions options, uint64_t* steps) const {
  std::string valid;
  if (data_->replace_invalid_bytes && !is_valid_utf8(text)) text = valid = replace_invalid_bytes(text);
  return encode_at(text, SpecialPlaces(options.parse_special), options.add_special, steps);
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, std::span<const TextSpan> spans,
                                       bool add_special) const {
  if (!data_->replace_invalid_bytes || is_valid_utf8(text))
    return encode_at(text, SpecialPlaces(text, spans), add_special, nullptr);
  std::string valid;
  std::vector<TextSpan> moved(spans.begin(), spans.end());
  for (TextSpan& span : moved) {
    const size_t begin = valid.size();
    valid += replace_invalid_bytes(text.substr(span.begin, span.end - span.begin));
    span.begin = begin, span.end = valid.size();
  }
  return encode_at(valid, SpecialPlaces(valid, moved), add_special, nullptr);
}

std::vector<TokenId> Tokenizer::encode_at(std::string_view text, const SpecialPlaces& special,
                                          bool add_special, uint64_t* steps) const {
  const Data& d = *data_;
  std::vector<TokenId> out;
  if (add_special) out = d.prefix;
  std::vector<Fragment> fragments;
  d.added.split(text, special, fragments);
  MergeScratch scratch;
  for (const Fragment& fragment : fragments) {
    if (fragment.id != kNoToken) {
      out.push_back(fragment.id);
    } else {
      d.encode_text(fragment.text, fragment.text.data() == text.data(), special, scratch, out);
    }
  }
  if (add_special) out.insert(out.end(), d.suffix.begin(), d.suffix.end());
  if (steps != nullptr) *steps += scratch.steps;
  return out;
}

std::string_view Tokenizer::piece(TokenId token, DecodeOptions options) const {
  if (token < 0 || token >= vocab_size() || (options.skip_special && is_control(token))) return {};
  return data_->pieces[static_cast<size_t>(token)];
}

std::string Tokenizer::Data::decode_byte_runs(std::span<const TokenId> tokens, DecodeOptions options) const {
  std::string out, run;
  const auto flush = [&] {
    if (is_valid_utf8(run)) {
      out += run;
    } else {
      for (size_t i = 0; i < run.size(); ++i) out += kReplacementUtf8;
    }
    run.clear();
  };
  for (const TokenId token : tokens) {
    const auto i = static_cast<size_t>(token);
    if (token < 0 || i >= pieces.size() || (options.skip_special && is_control[i])) continue;
    if (is_byte[i]) {
      run += pieces[i];
    } else {
      flush();
      out += pieces[i];
    }
  }
  flush();
  return out;
}

std::string Tokenizer::decode(std::span<const TokenId> tokens, DecodeOptions options) const {
  const Data& d = *data_;
  std::string out;
  bool leading = d.strip_leading_space, first = true;
  const auto is_shown = [&](TokenId token) {
    return token >= 0 && token < vocab_size() && !(options.skip_special && is_control(token));
  };
  if (d.invalid_bytes == InvalidBytes::kReplaceByteRuns) {
    out = d.decode_byte_runs(tokens, options);
    if (leading && out.starts_with(' ')) out.erase(0, 1);
  } else {
    for (const TokenId token : tokens) {
      std::string_view bytes = piece(token, options);
      if (first && d.first_pieces.size() > 0 && is_shown(token))
        bytes = d.first_pieces[static_cast<size_t>(token)];
      if (leading && bytes.starts_with(' ')) bytes.remove_prefix(1);
      if (is_shown(token)) leading = first = false;
      out += bytes;
    }
  }
  if (d.clean_up_spaces) out = text::clean_up_spaces(out);
  return d.invalid_bytes == InvalidBytes::kReplaceSequences ? replace_invalid_sequences(out) : out;
}

int Tokenizer::vocab_size() const { return static_cast<int>(data_->pieces.size()); }

bool Tokenizer::is_control(TokenId token) const {
  return token >= 0 && token < vocab_size() && data_->is_control[static_cast<size_t>(token)] != 0;
}

bool Tokenizer::is_end_token(TokenId token) const {
  return token >= 0 && token < vocab_size() && data_->is_end[static_cast<size_t>(token)] != 0;
}

std::span<const TokenId> Tokenizer::end_tokens() const { return data_->end_tokens; }

namespace {
std::optional<TokenId> optional_token(TokenId id) {
  return id == kNoToken ? std::nullopt : std::optional(id);
}
}  // namespace

std::optional<TokenId> Tokenizer::bos() const { return optional_token(data_->bos); }
std::optional<TokenId> Tokenizer::eos() const { return optional_token(data_->eos); }
std::optional<TokenId> Tokenizer::pad() const { return optional_token(data_->pad); }

std::optional<FimTokens> Tokenizer::fim() const {
  return data_->fim.prefix == kNoToken ? std::nullopt : std::optional(data_->fim);
}
bool Tokenizer::adds_bos() const {
  return data_->bos != kNoToken &&
         std::find(data_->prefix.begin(), data_->prefix.end(), data_->bos) != data_->prefix.end();
}

std::optional<TokenId> Tokenizer::token_id(std::string_view text) const {
  for (const AddedTokenMatcher* matcher : {&data_->added, &data_->normalized_added}) {
    if (const AddedToken* token = matcher->find(text)) return token->id;
  }
  return optional_token(data_->vocabulary.find(text));
}

}  // namespace tercet::text
