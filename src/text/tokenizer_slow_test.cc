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
    spec.scores.push_back(static_cast<float>(-id));
    if (id > 0) spec.merges.push_back({id - 1, id - 1, id});
  }
  spec.is_control.assign(spec.texts.size(), 0);
  return spec;
}

TEST(TokenizerSlow, TenMegabyteWord) {
  const std::string word(10 << 20, 'a');
  for (const ModelKind model : {ModelKind::kBpe, ModelKind::kSpm}) {
    const auto tokenizer = Tokenizer::create(doubling_spec(model));
    ASSERT_TRUE(tokenizer.ok());
    uint64_t steps = 0;
    EXPECT_EQ(tokenizer->encode(word, {}, &steps), std::vector<TokenId>(10 << 10, 10));
    EXPECT_LT(steps, 30 * word.size());
  }
}

}  // namespace
}  // namespace tercet::text
