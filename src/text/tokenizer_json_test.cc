#include "text/tokenizer_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "text/onig_regex.h"
#include "text/tokenizer.h"

namespace tercet::text {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

json bpe_file() {
  return json::parse(R"json({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 6, "content": "<s>", "special": true, "normalized": false},
                     {"id": 7, "content": "<tool>", "special": false, "normalized": false}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
      "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [6], "tokens": ["<s>"]}}},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "Ġ": 2, "ab": 3, "Ġab": 4, "é": 5}, "merges": ["a b", ["Ġ", "ab"]]}
  })json");
}

Result<Tokenizer> load(const json& file) {
  TERCET_ASSIGN(TokenizerSpec spec, tokenizer_spec_from_json(file.dump()));
  return Tokenizer::create(std::move(spec));
}

Tokenizer loaded(const json& file) {
  auto tokenizer = load(file);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().to_string();
  return *std::move(tokenizer);
}

template <class Change>
std::string error_after(const Change& change) {
  json file = bpe_file();
  change(file);
  const auto result = load(file);
  return result.ok() ? "ok" : result.error().to_string();
}

TEST(TokenizerJson, ByteLevelBpe) {
  const Tokenizer t = loaded(bpe_file());
  EXPECT_THAT(t.encode("ab ab", {.add_special = true}), ElementsAre(6, 3, 4));
  EXPECT_THAT(t.encode("a<s><tool>b"), ElementsAre(0, 7, 1)) << "special: false is matched always";
  EXPECT_THAT(t.encode("a<s>b", {.parse_special = true}), ElementsAre(0, 6, 1));
  EXPECT_EQ(t.decode(std::vector<TokenId>{6, 3, 4}), "<s>ab ab");
  EXPECT_EQ(t.decode(std::vector<TokenId>{6, 3, 4}, {.skip_special = true}), "ab ab");
  EXPECT_EQ(t.decode(std::vector<TokenId>{5}), "\uFFFD") << "é is the byte 0xE9 in the byte alphabet";
}

TEST(TokenizerJson, NormalizerAndNormalizedAddedTokens) {
  json file = bpe_file();
  file["normalizer"] = {{"type", "Lowercase"}};
  file["added_tokens"].push_back({{"id", 8}, {"content", "BB"}, {"special", false}, {"normalized", true}});
  const Tokenizer t = loaded(file);
  EXPECT_THAT(t.encode("Abbba"), ElementsAre(0, 8, 1, 0));
  EXPECT_THAT(t.encode("<TOOL>").size(), 0u) << "not normalized: found in the text as it is";
}

TEST(TokenizerJson, MetaspaceAndByteFallback) {
  const json file = json::parse(R"json({
    "added_tokens": [{"id": 0, "content": "<unk>", "special": true, "normalized": false}],
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
                   {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
    "pre_tokenizer": null, "post_processor": null,
    "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
              "vocab": {"<unk>": 0, "▁": 1, "a": 2, "▁a": 3, "<0xC3>": 4, "<0xA9>": 5, "<0xE4>": 6}, "merges": ["▁ a"]}
  })json");
  const Tokenizer t = loaded(file);
  EXPECT_THAT(t.encode("a aé"), ElementsAre(3, 3, 4, 5));
  EXPECT_THAT(t.encode("中文a"), ElementsAre(1, 0, 2)) << "not all bytes are there, and unknown ones fuse";
  EXPECT_EQ(t.decode(t.encode("a aé")), "a aé");
  EXPECT_EQ(t.decode(std::vector<TokenId>{3, 4, 6, 2}), "a\uFFFD\uFFFDa");
}

TEST(TokenizerJson, UnigramWithMetaspacePreTokenizer) {
  const json file = json::parse(R"json({
    "added_tokens": [{"id": 3, "content": "<m>", "special": false, "lstrip": true, "normalized": false}],
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true},
    "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
    "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["▁a", -1], ["b", -2]]}
  })json");
  const Tokenizer t = loaded(file);
  EXPECT_THAT(t.encode("ab a <m>ab"), ElementsAre(1, 2, 1, 3, 0, 2)) << "only the beginning gets a space";
  EXPECT_EQ(t.decode(std::vector<TokenId>{1, 2, 1}), "ab a");
}

TEST(TokenizerJson, WordPiece) {
  const json file = json::parse(R"json({
    "added_tokens": [],
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
                   "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 9,
              "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "he": 3, "##llo": 4, "中": 5, "!": 6}}
  })json");
  const Tokenizer t = loaded(file);
  EXPECT_THAT(t.encode("Héllo中!", {.add_special = true}), ElementsAre(1, 3, 4, 5, 6, 2));
  EXPECT_THAT(t.encode("hellollollo"), ElementsAre(0)) << "longer than 9 characters";
  EXPECT_THAT(t.encode("he\u0085llo\u00A0!"), ElementsAre(3, 4, 6)) << "a control character, and a space";
  EXPECT_EQ(t.decode(std::vector<TokenId>{3, 4, 5, 6}), "hello 中!");
  EXPECT_EQ(t.decode(std::vector<TokenId>{4, 4}), "##llollo") << "nothing goes before the first";
}

TEST(TokenizerJson, MetaspaceBehindAnotherSplit) {
  const json file = json::parse(R"json({
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"},
                      {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true}]},
    "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["▁a", -1], ["b", -2], ["▁", -3]]}
  })json");
  EXPECT_THAT(loaded(file).encode(" ab  a b"), ElementsAre(1, 2, 1, 3, 2));
  json first = file;
  first["pre_tokenizer"]["pretokenizers"][1]["prepend_scheme"] = "first";
  EXPECT_THAT(loaded(first).encode("b b"), ElementsAre(3, 2, 2));
  EXPECT_THAT(loaded(first).encode(" b b"), ElementsAre(2, 2))
      << "what begins behind a space is not the beginning";
}

TEST(TokenizerJson, UnigramByteFallbackIsByRun) {
  const json file = json::parse(R"json({
    "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": true,
              "vocab": [["<unk>", 0], ["a", -1], ["<0xC3>", -9], ["<0xA9>", -9]]}
  })json");
  EXPECT_THAT(loaded(file).encode("aéa"), ElementsAre(1, 2, 3, 1));
  EXPECT_THAT(loaded(file).encode("aéxa"), ElementsAre(1, 0, 1)) << "x has no byte token";
}

TEST(TokenizerJson, AddedTokensAreNotOfTheModel) {
  json file = bpe_file();
  file["pre_tokenizer"] = nullptr;
  file["added_tokens"].push_back({{"id", 8}, {"content", "c"}, {"special", true}, {"normalized", false}});
  EXPECT_THAT(loaded(file).encode("ac"), ElementsAre(0))
      << "a special token's text, and no letter of the model";
  EXPECT_THAT(loaded(file).encode("ac", {.parse_special = true}), ElementsAre(0, 8));
}

TEST(TokenizerJson, WhatATokenThatTakesWhiteSpaceTookIsFoundToo) {
  json file = bpe_file();
  file["added_tokens"].push_back({{"id", 8}, {"content", "\n"}, {"special", false}, {"rstrip", true}});
  EXPECT_THAT(loaded(file).encode("a\n \nb"), ElementsAre(0, 8, 8, 1));
  file["added_tokens"].back()["lstrip"] = true;
  EXPECT_THAT(loaded(file).encode("a\n \nb"), ElementsAre(0, 8, 1));
}

TEST(TokenizerJson, ExpressionsInOnigurumasSyntax) {
  EXPECT_EQ(pcre_of_onig(R"(\s+|[^\r\n\p{L}]?\d)").value(), R"(\s+|[^\r\n\p{L}]?\d)");
  EXPECT_EQ(pcre_of_onig(R"(\h[\h_]\H\\h)").value(), R"([0-9a-fA-F][0-9a-fA-F_][^0-9a-fA-F]\\h)");
  EXPECT_FALSE(pcre_of_onig("[a-z&&[^b]]").ok());
  json file = bpe_file();
  file["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"Regex", R"(\w+)"}}}, {"behavior", "Removed"}, {"invert", true}},
        file["pre_tokenizer"]}}};
  EXPECT_THAT(loaded(file).encode("a\u0301b ab"), ElementsAre(0, 1, 3)) << "a mark is a part of a word";
}

TEST(TokenizerJson, WhatIsWrongIsNamed) {
  EXPECT_EQ(error_after([](json&) {}), "ok");
  EXPECT_THAT(tokenizer_spec_from_json(R"({"model": "\ud800"})").error().to_string(), HasSubstr("is no JSON"))
      << "a lone surrogate";
  EXPECT_THAT(tokenizer_spec_from_json("{").error().to_string(), HasSubstr("is no JSON"));
  EXPECT_THAT(tokenizer_spec_from_json("[]").error().to_string(), HasSubstr("expected an object"));
  for (const char* mark : {"", "ab"}) {
    for (const char* part : {"pre_tokenizer", "decoder"}) {
      EXPECT_THAT(error_after([&](json& f) {
                    f[part] = {{"type", "Metaspace"}, {"replacement", mark}};
                  }),
                  HasSubstr(std::string(part) + ".replacement: expected one character"));
    }
  }
  EXPECT_THAT(error_after([](json& f) { f.erase("model"); }), HasSubstr("model: missing"));
  EXPECT_THAT(error_after([](json& f) { f["model"]["type"] = "WordLevel"; }),
              HasSubstr("\"WordLevel\" is not supported"));
  EXPECT_THAT(error_after([](json& f) { f["model"]["vocab"]["b"] = 4000000000; }),
              HasSubstr("id 4000000000"));
  EXPECT_THAT(error_after([](json& f) { f["model"]["vocab"]["b"] = 0; }), HasSubstr("both have the id 0"));
  EXPECT_THAT(error_after([](json& f) { f["added_tokens"][0]["id"] = 0; }), HasSubstr("both have the id 0"));
  EXPECT_THAT(error_after([](json& f) { f["model"]["vocab"]["b"] = "x"; }), HasSubstr("is no integer"));
  EXPECT_THAT(error_after([](json& f) { f["model"]["merges"] = {"a x"}; }),
              HasSubstr("not of tokens in the vocabulary"));
  EXPECT_THAT(error_after([](json& f) { f["model"].erase("merges"); }), HasSubstr("model.merges: missing"));
  EXPECT_THAT(error_after([](json& f) {
                f["normalizer"] = {{"type", "Nmt"}};
              }),
              HasSubstr("normalizer.type"));
  EXPECT_THAT(error_after([](json& f) {
                f["pre_tokenizer"] = {{"type", "Split"}};
              }),
              HasSubstr("pre_tokenizer.pattern"));
  EXPECT_THAT(
      error_after([](json& f) {
        f["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", "("}}}, {"behavior", "Isolated"}};
      }),
      HasSubstr("does not compile"));
  EXPECT_THAT(error_after([](json& f) { f["added_tokens"][0]["id"] = -1; }),
              HasSubstr("\"<s>\" has the id -1"));
  EXPECT_THAT(error_after([](json& f) { f["post_processor"]["special_tokens"] = json::object(); }),
              HasSubstr("no ids"));
  EXPECT_THAT(error_after([](json& f) { f["post_processor"]["special_tokens"]["<s>"]["ids"] = {999}; }),
              HasSubstr("prefix is token 999"));
  EXPECT_THAT(error_after([](json& f) {
                for (int depth = 0; depth < 20; ++depth) {
                  f["normalizer"] = {{"type", "Sequence"}, {"normalizers", json::array({f["normalizer"]})}};
                }
              }),
              HasSubstr("nested"));
}

}  // namespace
}  // namespace tercet::text
