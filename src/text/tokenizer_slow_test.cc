#include <gtest/gtest.h>

#include "text/tokenizer.h"

namespace tercet::text {
namespace {

// Tokens "a", "aa", "aaaa", ... up to 2^levels times "a", each merged from two of the one before.
TokenizerSpec doubling_spec(ModelKind model, int levels) {
  TokenizerSpec spec;
  spec.model = model;
  std::string text = "a";
  for (TokenId id = 0; id <= levels; ++id, text += text) {
    spec.texts.push_back(text);
    spec.pieces.push_back(text);
    spec.scores.push_back(-1 - id);
    if (id > 0) spec.merges.push_back({id - 1, id - 1, id});
  }
  spec.is_control.assign(spec.texts.size(), 0);
  return spec;
}

TEST(TokenizerSlow, TenMegabyteWord) {
  const std::string word(10 << 20, 'a');
  for (const ModelKind model : {ModelKind::kBpe, ModelKind::kSpm, ModelKind::kUnigram}) {
    // The unigram model looks at every token at every place.
    const int levels = model == ModelKind::kUnigram ? 4 : 10;
    const auto tokenizer = Tokenizer::create(doubling_spec(model, levels));
    ASSERT_TRUE(tokenizer.ok());
    uint64_t steps = 0;
    EXPECT_EQ(tokenizer->encode(word, {}, &steps), std::vector<TokenId>(word.size() >> levels, levels));
    EXPECT_LT(steps, 30 * word.size());
  }
}

TEST(TokenizerSlow, TenMegabyteWordOfPieces) {
  TokenizerSpec spec;
  spec.model = ModelKind::kWordPiece;
  spec.texts = spec.pieces = {"[UNK]", "a", "##a", "##aaaa", "##aaaaaaac"};
  spec.is_control.assign(spec.texts.size(), 0);
  spec.bpe.unknown = 0;
  spec.max_word_chars = INT32_MAX;
  uint64_t steps = 0;
  const std::string word((10 << 20) + 1, 'a');
  EXPECT_EQ(Tokenizer::create(std::move(spec))->encode(word, {}, &steps).size(), size_t{1 + (10 << 18)});
  EXPECT_LT(steps, 3 * word.size());
}

}  // namespace
}  // namespace tercet::text
