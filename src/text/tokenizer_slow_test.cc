#include <gtest/gtest.h>

#include "text/tokenizer.h"

namespace tercet::text {
namespace {

// Tokens "a", "aa", "aaaa", ... up to 2^10 times "a", each merged from two of the one before.
TokenizerSpec doubling_spec(ModelKind model) {
  TokenizerSpec spec;
  spec.model = model;
  std::string text = "a";
  for (TokenId id = 0; id <= 10; ++id, text += text) {
    spec.texts.push_back(text);
    spec.pieces.push_back(text);
    spec.scores.push_back(-id);
    if (id > 0) spec.merges.push_back({id - 1, id - 1, id});
  }
  spec.is_control.assign(spec.texts.size(), 0);
  return spec;
}

TEST(TokenizerSlow, TenMegabyteWord) {
  const std::string word(10 << 20, 'a');
  for (const ModelKind model : {ModelKind::kBpe, ModelKind::kSpm, ModelKind::kUnigram}) {
    const auto tokenizer = Tokenizer::create(doubling_spec(model));
    ASSERT_TRUE(tokenizer.ok());
    uint64_t steps = 0;
    EXPECT_EQ(tokenizer->encode(word, {}, &steps).size(), size_t{10 << 10});
    // The unigram model looks at every token at every place.
    EXPECT_LT(steps, (model == ModelKind::kUnigram ? 1100 : 30) * word.size());
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
