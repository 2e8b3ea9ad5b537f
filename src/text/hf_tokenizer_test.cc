#include "text/hf_tokenizer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"

namespace tercet::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr char kTokenizer[] = R"json({
  "added_tokens": [{"id": 2, "content": "<s>", "special": true, "normalized": false},
                   {"id": 3, "content": "<end>", "special": true, "normalized": false}],
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
  "decoder": {"type": "ByteLevel"},
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "</s>": 4}, "merges": []}
})json";

class HfTokenizerTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "tercet_hf_XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    write("tokenizer.json", kTokenizer);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, std::string_view contents) {
    const std::filesystem::path path = std::filesystem::path(folder_) / name;
    std::filesystem::create_directories(path.parent_path());
    ASSERT_TRUE(write_file(path.string(), contents).ok());
  }
  ModelText open(const HfTokenizerOptions& options = {}) {
    auto opened = open_hf_tokenizer(folder_, options);
    EXPECT_TRUE(opened.ok()) << opened.error().to_string();
    return *std::move(opened);
  }
  std::string error() {
    const auto opened = open_hf_tokenizer(folder_);
    return opened.ok() ? "ok" : opened.error().to_string();
  }
  static std::string rendered(const ModelText& opened, bool with_tools = false) {
    ChatInput input;
    input.messages = {chat_message("user", "hi")};
    input.has_tools = with_tools;
    input.special_tokens = opened.special_tokens;
    return opened.chat_template.value().render(input).value();
  }

  std::string folder_;
};

TEST_F(HfTokenizerTest, TokenizerJsonAloneIsEnough) {
  EXPECT_TRUE(is_hf_tokenizer(folder_));
  EXPECT_TRUE(is_hf_tokenizer(folder_ + "/tokenizer.json"));
  EXPECT_FALSE(is_hf_tokenizer(folder_ + "/model.gguf"));
  const ModelText opened = open();
  EXPECT_THAT(opened.tokenizer.encode("ab"), ElementsAre(0, 1));
  EXPECT_FALSE(opened.chat_template.has_value());
  EXPECT_THAT(opened.special_tokens, ElementsAre());
  EXPECT_TRUE(open_hf_tokenizer(folder_ + "/tokenizer.json").ok());
}

TEST_F(HfTokenizerTest, SpecialTokensFromConfigThenFromTheMap) {
  write("tokenizer_config.json",
        R"({"bos_token": null, "eos_token": {"content": "<end>"}, "add_bos_token": true,
                                     "extra_special_tokens": {"image_token": "<img>"}})");
  write("special_tokens_map.json", R"({"bos_token": "<s>", "eos_token": "<s>", "pad_token": "none such"})");
  const ModelText opened = open({.more_end_tokens = {2}});
  EXPECT_THAT(opened.special_tokens,
              ElementsAre(Pair("bos_token", "<s>"), Pair("eos_token", "<end>"),
                          Pair("pad_token", "none such"), Pair("image_token", "<img>")));
  EXPECT_EQ(opened.tokenizer.bos(), 2);
  EXPECT_EQ(opened.tokenizer.eos(), 3);
  EXPECT_EQ(opened.tokenizer.pad(), std::nullopt);
  EXPECT_THAT(opened.tokenizer.end_tokens(), ElementsAre(2, 3));
  EXPECT_THAT(opened.tokenizer.encode("a", {.add_special = true}), ElementsAre(2, 0)) << "add_bos_token";
}

TEST_F(HfTokenizerTest, ATokenOfTheVocabularyBecomesSpecial) {
  write("tokenizer_config.json", R"({"eos_token": "</s>", "add_eos_token": true})");
  const Tokenizer tokenizer = open().tokenizer;
  EXPECT_EQ(tokenizer.eos(), 4);
  EXPECT_TRUE(tokenizer.is_control(4));
  EXPECT_THAT(tokenizer.encode("a</s>", {.add_special = true, .parse_special = true}), ElementsAre(0, 4, 4));
}

TEST_F(HfTokenizerTest, AdditionsThatTheConfigTurnsOff) {
  std::string with_template(kTokenizer);
  with_template.insert(with_template.find("\"decoder\""), R"("post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
      "special_tokens": {"<s>": {"ids": [2]}}},)");
  write("tokenizer.json", with_template);
  EXPECT_THAT(open().tokenizer.encode("a", {.add_special = true}), ElementsAre(2, 0));
  write("tokenizer_config.json", R"({"bos_token": "<s>", "add_bos_token": false})");
  EXPECT_THAT(open().tokenizer.encode("a", {.add_special = true}), ElementsAre(0));
}

TEST_F(HfTokenizerTest, TokensForFillingInTheMiddleAreFoundByName) {
  EXPECT_EQ(open().tokenizer.fim(), std::nullopt);
  const auto added = [&](const char* prefix, const char* suffix, const char* middle) {
    std::string tokens = R"("added_tokens": [)";
    int id = 2;
    for (const char* content : {prefix, suffix, middle})
      tokens += fmt::format(R"({{"id": {}, "content": "{}", "special": false}}{})", id++, content,
                            content == middle ? "]" : ",");
    write("tokenizer.json",
          R"({)" + tokens +
              R"(, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})");
    return open().tokenizer.fim();
  };
  for (const auto& fim : {added("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
                          added("<fim_prefix>", "<fim_suffix>", "<fim_middle>")}) {
    ASSERT_TRUE(fim.has_value());
    EXPECT_EQ(std::tuple(fim->prefix, fim->suffix, fim->middle), std::tuple(2, 3, 4));
  }
  EXPECT_EQ(added("<before>", "<behind>", "<between>"), std::nullopt);
  write(
      "tokenizer_config.json",
      R"({"prefix_token": "<before>", "suffix_token": {"content": "<behind>"}, "middle_token": "<between>"})");
  EXPECT_TRUE(open().tokenizer.fim().has_value());
}

TEST_F(HfTokenizerTest, TheTemplateFileWinsOverTheConfig) {
  write("tokenizer_config.json", R"({"bos_token": "<s>", "chat_template": "config {{ bos_token }}"})");
  EXPECT_EQ(rendered(open()), "config <s>");
  write("chat_template.jinja", "file {{ messages[0].content }}");
  EXPECT_EQ(rendered(open()), "file hi");
  EXPECT_EQ(rendered(open({.chat_template = "given"})), "given");
}

TEST_F(HfTokenizerTest, NamedTemplates) {
  write("tokenizer_config.json", R"({"chat_template": [{"name": "default", "template": "plain"},
                                                       {"name": "tool_use", "template": "tools"}]})");
  EXPECT_EQ(rendered(open()), "plain");
  EXPECT_EQ(rendered(open(), true), "tools");
  write("chat_template.jinja", "file");
  EXPECT_EQ(rendered(open(), true), "file");
  write("additional_chat_templates/tool_use.jinja", "file for tools");
  EXPECT_EQ(rendered(open(), true), "file for tools");
}

TEST_F(HfTokenizerTest, TemplatesElsewhereAndDamaged) {
  write("chat_template.json", R"({"chat_template": "processor"})");
  EXPECT_EQ(rendered(open()), "processor");
  write("chat_template.jinja", "{% if %}");
  EXPECT_FALSE(open().chat_template.has_value());
  const auto given = open_hf_tokenizer(folder_, {.chat_template = "{% if %}"});
  ASSERT_FALSE(given.ok()) << "a template that the user gave is an error";
}

TEST_F(HfTokenizerTest, ErrorsNameFileAndField) {
  write("tokenizer_config.json", R"({"eos_token": "</none>"})");
  EXPECT_THAT(error(), HasSubstr(folder_ + "/tokenizer_config.json: eos_token: is \"</none>\""));
  write("tokenizer_config.json", "nonsense");
  EXPECT_THAT(error(), HasSubstr("tokenizer_config.json: is no JSON object"));
  write("tokenizer_config.json", "{}");
  write("tokenizer.json", R"({"model": {"type": "Magic"}})");
  EXPECT_THAT(error(), HasSubstr(folder_ + "/tokenizer.json: model.type"));
  std::filesystem::remove(folder_ + "/tokenizer.json");
  EXPECT_THAT(error(), HasSubstr("tokenizer.json: missing"));
  write("tokenizer.model", "");
  EXPECT_THAT(error(), HasSubstr("a tokenizer.model alone is not supported"));
  write("tokenizer.json", kTokenizer);
  EXPECT_THAT(open_hf_tokenizer(folder_, {.more_end_tokens = {9}}).error().to_string(),
              HasSubstr("end token 9 is outside the vocabulary of 5"));
}

}  // namespace
}  // namespace tercet::text
