// Any text through every kind of model. The first byte chooses the model and the options.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "base/check.h"
#include "text/pre_tokenizers.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

namespace tercet::text {
namespace {

// All bytes, a few merges of them, a special token and an added one.
TokenizerSpec base_spec() {
  TokenizerSpec spec;
  for (int byte = 0; byte < 256; ++byte) spec.texts.emplace_back(1, static_cast<char>(byte));
  for (const char* text : {"ab", "  ", "abab", "\n\n", "\xE2\x96\x81",
                           "\xE2\x96\x81"
                           "a",
                           "12", "\xC3\xA9"}) {
    spec.texts.emplace_back(text);
  }
  spec.texts.emplace_back("<s>");
  spec.texts.emplace_back("<tool>");
  spec.pieces = spec.texts;
  spec.is_control.assign(spec.texts.size(), 0);
  const auto special = static_cast<TokenId>(spec.texts.size() - 2);
  spec.added_tokens = {{special, "<s>", true, true, true}, {special + 1, "<tool>"}};
  spec.merges = {{'a', 'b', 256},   {' ', ' ', 257}, {256, 256, 258},
                 {'\n', '\n', 259}, {'1', '2', 262}, {0xC3, 0xA9, 263}};
  for (size_t id = 0; id < spec.texts.size(); ++id) spec.scores.push_back(-static_cast<float>(id % 7) - 1);
  for (int byte = 0; byte < 256; ++byte) spec.bpe.byte_tokens[static_cast<size_t>(byte)] = byte;
  return spec;
}

std::vector<Tokenizer> make_tokenizers() {
  std::vector<Tokenizer> all;
  for (const std::string_view name : pre_tokenizer_names()) {
    TokenizerSpec spec = base_spec();
    PreTokenizer pre;
    TERCET_CHECK(find_pre_tokenizer(name, pre));
    spec.splits = pre.splits;
    spec.bpe.byte_symbols = !pre.characters;
    all.push_back(*Tokenizer::create(std::move(spec)));
  }
  for (const ModelKind kind : {ModelKind::kSpm, ModelKind::kUnigram, ModelKind::kWordPiece}) {
    TokenizerSpec spec = base_spec();
    spec.model = kind;
    spec.replace_invalid_bytes = kind != ModelKind::kSpm;
    spec.match_order = MatchOrder::kLeftmostLongest;
    NormalizerStep nfc, space;
    space.kind = NormalizerKind::kReplace, space.pattern = " ", space.content = kMetaspace;
    if (kind != ModelKind::kSpm) spec.normalizer.push_back(nfc);
    spec.normalizer.push_back(space);
    all.push_back(*Tokenizer::create(std::move(spec)));
  }
  return all;
}

// By tokenizer: whether a text comes back as it was.
std::vector<bool> which_keep_text() {
  std::vector<bool> all;
  for (const std::string_view name : pre_tokenizer_names()) all.push_back(name != "whitespace");
  all.insert(all.end(), 3, false);
  return all;
}

}  // namespace
}  // namespace tercet::text

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tercet::text;
  static const std::vector<Tokenizer> tokenizers = make_tokenizers();
  if (size < 2) return 0;
  const Tokenizer& tokenizer = tokenizers[data[0] % tokenizers.size()];
  const bool parse_special = data[1] & 1;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::vector<TokenId> ids = tokenizer.encode(text, {.parse_special = parse_special});
  for (const TokenId id : ids) TERCET_CHECK(id >= 0 && id < tokenizer.vocab_size());
  static const std::vector<bool> keep_text = which_keep_text();
  const std::string decoded = tokenizer.decode(ids);
  if (keep_text[data[0] % tokenizers.size()] && !parse_special)
    TERCET_CHECK(decoded == replace_invalid_bytes(text));
  return 0;
}
