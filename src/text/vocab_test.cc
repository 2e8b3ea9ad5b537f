// GGUF vocabularies: what is read, what is assumed, what is refused.
#include "text/vocab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "text/test_data.h"
#include "text/tokenizer.h"

namespace tercet::text {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

json bpe_metadata() {
  return {{"tokenizer.ggml.model", "gpt2"},
          {"tokenizer.ggml.pre", "gpt-2"},
          {"tokenizer.ggml.tokens", {"a", "b", "ab", "<|im_end|>", "Ġ"}},
          {"tokenizer.ggml.token_type", {1, 1, 1, 3, 1}},
          {"tokenizer.ggml.merges", {"a b"}},
          {"tokenizer.ggml.eos_token_id", 3}};
}

json spm_metadata() {
  return {{"tokenizer.ggml.model", "llama"},
          {"tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "<0x41>", "▁", "a", "▁a"}},
          {"tokenizer.ggml.scores", {0, 0, 0, 0, -1, -2, -3}},
          {"tokenizer.ggml.token_type", {2, 3, 3, 6, 1, 1, 1}}};
}

Result<Tokenizer> load_vocab(const json& metadata, const std::string& pre = {}) {
  TERCET_ASSIGN(VocabSpec vocab, vocab_from_metadata(metadata_from_json(metadata.dump()), pre));
  TERCET_ASSIGN(TokenizerSpec spec, tokenizer_spec(std::move(vocab)));
  return Tokenizer::create(std::move(spec));
}

std::string error_of(const json& metadata) {
  const auto result = load_vocab(metadata);
  return result.ok() ? "ok" : result.error().to_string();
}

template <class Change>
std::string error_after(json metadata, const Change& change) {
  change(metadata);
  return error_of(metadata);
}

TEST(Vocab, Loads) {
  const auto bpe = load_vocab(bpe_metadata());
  ASSERT_TRUE(bpe.ok()) << bpe.error().to_string();
  EXPECT_THAT(bpe->encode("ab a"), ElementsAre(2, 4, 0));
  const auto spm = load_vocab(spm_metadata());
  ASSERT_TRUE(spm.ok()) << spm.error().to_string();
  EXPECT_THAT(spm->encode("aA", {.add_special = true}), ElementsAre(1, 6, 3));
}

// The faults of the hostile GGUF files that concern the tokenizer.
TEST(Vocab, HostileMetadataIsRefusedByName) {
  EXPECT_THAT(error_after(spm_metadata(), [](json& m) { m["tokenizer.ggml.bos_token_id"] = 4000000000u; }),
              HasSubstr("tokenizer.ggml.bos_token_id: is token 4000000000, the vocabulary has 7 tokens"));
  EXPECT_THAT(error_after(spm_metadata(),
                          [](json& m) {
                            m["tokenizer.ggml.scores"] = {0, 0};
                          }),
              HasSubstr("tokenizer.ggml.scores: 2 scores for 7 tokens"));
  EXPECT_THAT(error_after(spm_metadata(), [](json& m) { m["tokenizer.ggml.tokens"][3] = "<0x-1>"; }),
              HasSubstr("token 3 is of type byte and reads \"<0x-1>\""));
  EXPECT_THAT(error_after(spm_metadata(), [](json& m) { m["tokenizer.ggml.tokens"][6] = "a"; }),
              HasSubstr("tokens 5 and 6 are both \"a\""));
  EXPECT_THAT(error_after(spm_metadata(), [](json& m) { m["tokenizer.ggml.token_type"] = {1}; }),
              HasSubstr("tokenizer.ggml.token_type: 1 token types for 7 tokens"));
  EXPECT_THAT(error_after(bpe_metadata(), [](json& m) { m.erase("tokenizer.ggml.merges"); }),
              HasSubstr("tokenizer.ggml.merges: the merges are missing"));
  EXPECT_THAT(error_after(bpe_metadata(), [](json& m) { m["tokenizer.ggml.merges"] = {"ab"}; }),
              HasSubstr("merge 0 is \"ab\""));
  EXPECT_THAT(error_after(bpe_metadata(), [](json& m) { m["tokenizer.ggml.tokens"] = 7; }),
              HasSubstr("tokenizer.ggml.tokens: missing, or no array of strings"));
  EXPECT_THAT(error_after(bpe_metadata(), [](json& m) { m["tokenizer.ggml.tokens"] = json::array(); }),
              HasSubstr("token types for 0 tokens"));
  EXPECT_THAT(error_after(bpe_metadata(), [](json& m) { m["tokenizer.ggml.eos_token_id"] = "3"; }),
              HasSubstr("tokenizer.ggml.eos_token_id: expected an integer"));
  EXPECT_THAT(error_after(bpe_metadata(), [](json& m) { m["tokenizer.ggml.eos_token_id"] = -7; }),
              HasSubstr("is token -7"));
  EXPECT_THAT(error_after(bpe_metadata(), [](json& m) { m["tokenizer.ggml.model"] = "rwkv"; }),
              HasSubstr("\"rwkv\" is not supported; supported are gpt2, llama"));
  EXPECT_THAT(error_after(bpe_metadata(), [](json& m) { m.erase("tokenizer.ggml.model"); }),
              HasSubstr("no tokenizer"));
  EXPECT_THAT(error_after(bpe_metadata(), [](json& m) { m["tokenizer.ggml.add_bos_token"] = true; }),
              HasSubstr("tokenizer.ggml.add_bos_token: is true"));
}

TEST(Vocab, UnknownPreTokenizerListsTheKnownOnes) {
  json metadata = bpe_metadata();
  metadata["tokenizer.ggml.pre"] = "no-such";
  EXPECT_THAT(error_of(metadata),
              testing::AllOf(HasSubstr("\"no-such\""), HasSubstr("llama-bpe"), HasSubstr("qwen2")));
  const auto by_hand = load_vocab(metadata, "qwen2");
  EXPECT_TRUE(by_hand.ok());
}

// Row B18 of the reports.
TEST(Vocab, MissingPreTokenizerIsAssumedAndSaid) {
  json metadata = bpe_metadata();
  metadata.erase("tokenizer.ggml.pre");
  testing::internal::CaptureStderr();
  const auto tokenizer = load_vocab(metadata);
  const std::string said = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_THAT(said, HasSubstr("tokenizer.ggml.pre is missing: assuming \"default\""));
}

TEST(Vocab, MergesOutsideTheVocabularyAreIgnored) {
  json metadata = bpe_metadata();
  metadata["tokenizer.ggml.merges"] = {"b a", "x y", "a b"};
  const auto tokenizer = load_vocab(metadata);
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_THAT(tokenizer->encode("ab"), ElementsAre(2));
}

TEST(Vocab, EndTokensByTheirText) {
  const auto ends = [](const char* name) {
    const auto span = test_tokenizer(name).end_tokens();
    std::vector<TokenId> sorted(span.begin(), span.end());
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  };
  // <|endoftext|>, <|im_end|>, <|fim_pad|>, <|repo_name|>, <|file_sep|>; and </s>, as llama.cpp takes it.
  EXPECT_THAT(ends("q05"), ElementsAre(128247, 151643, 151645, 151662, 151663, 151664));
  EXPECT_THAT(ends("gemma3-270m"), ElementsAre(1, 106, 212));  // <eos>, <end_of_turn>, </s>
  EXPECT_THAT(ends("phi-3"), ElementsAre(2, 32000, 32007));    // </s>, <|endoftext|>, <|end|>
}

TEST(Vocab, DefaultsOfTheModelKinds) {
  const Tokenizer& llama = test_tokenizer("llama-spm");
  EXPECT_TRUE(llama.adds_bos());
  EXPECT_EQ(llama.bos(), 1);
  EXPECT_EQ(llama.eos(), 2);
  EXPECT_FALSE(test_tokenizer("q05").adds_bos());
  EXPECT_TRUE(test_tokenizer("gemma3-270m").adds_bos());
}

// The layout of T5's files: SentencePiece's unigram model.
TEST(Vocab, Unigram) {
  const json metadata = {
      {"tokenizer.ggml.model", "t5"},
      {"tokenizer.ggml.tokens", {"<pad>", "</s>", "<unk>", "▁", "▁a", "b", "a", "<extra>"}},
      {"tokenizer.ggml.scores", {0, 0, 0, -2, -1, -3, -4, 0}},
      {"tokenizer.ggml.token_type", {3, 3, 2, 1, 1, 1, 1, 4}},
      {"tokenizer.ggml.remove_extra_whitespaces", true}};
  const auto t5 = load_vocab(metadata);
  ASSERT_TRUE(t5.ok()) << t5.error().to_string();
  EXPECT_THAT(t5->encode("ab   a", {.add_special = true}), ElementsAre(4, 5, 4, 1));
  EXPECT_THAT(t5->encode("a<extra>z"), ElementsAre(4, 7, 3, 2));
  EXPECT_EQ(t5->decode(t5->encode("ab a")), "ab a");
}

TEST(Vocab, DamagedCharsmapIsRefused) {
  json metadata = {{"tokenizer.ggml.model", "t5"}, {"tokenizer.ggml.tokens", {"<pad>", "</s>", "<unk>"}}};
  for (const std::vector<int>& map :
       {std::vector<int>{1, 2}, {255, 255, 255, 255, 0}, {3, 0, 0, 0, 1, 1, 1, 0}}) {
    metadata["tokenizer.ggml.precompiled_charsmap"] = map;
    EXPECT_THAT(error_of(metadata), HasSubstr("charsmap"));
  }
}

TEST(Vocab, WordPiece) {
  const json metadata = {
      {"tokenizer.ggml.model", "bert"},
      {"tokenizer.ggml.tokens", {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁hello", "▁wor", "ld", "▁!"}},
      {"tokenizer.ggml.token_type", {3, 3, 3, 3, 1, 1, 1, 1}},
      {"tokenizer.ggml.bos_token_id", 2},
      {"tokenizer.ggml.seperator_token_id", 3},
      {"tokenizer.ggml.unknown_token_id", 1}};
  const auto bert = load_vocab(metadata);
  ASSERT_TRUE(bert.ok()) << bert.error().to_string();
  EXPECT_THAT(bert->encode("Héllo  world! xyz", {.add_special = true}), ElementsAre(2, 4, 5, 6, 7, 1, 3));
}

}  // namespace
}  // namespace tercet::text
