#include "app/tokenize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "app/test_folder.h"
#include "base/file.h"

namespace tercet::app {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kTokenizer[] = R"json({
  "added_tokens": [{"id": 4, "content": "<s>", "special": true, "normalized": false},
                   {"id": 5, "content": "<end>", "special": true, "normalized": false}],
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
    "special_tokens": {"<s>": {"ids": [4]}}},
  "decoder": {"type": "ByteLevel"},
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "Ã": 3, "<": 6, "Ċ": 7}, "merges": ["a b"]}
})json";

class TokenizeTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_file(folder_ / "tokenizer.json", kTokenizer).ok());
    ASSERT_TRUE(write_file(folder_ / "tokenizer_config.json", R"({"bos_token": "<s>", "chat_template":
        "{{ bos_token }}{% for m in messages %}{{ m.content }}<end>\n{% endfor %}{% if tools %}T{% endif %}"})")
                    .ok());
    options_.path = folder_.path();
  }
  std::string run() {
    std::ostringstream out;
    const Status status = tokenize(options_, out);
    return status.ok() ? out.str() : status.error().to_string();
  }

  TestFolder folder_;
  TokenizeOptions options_;
};

TEST_F(TokenizeTest, OneTokenALineAndTheCount) {
  options_.text = "ab<s>";
  EXPECT_EQ(run(),
            "     0       4  \"<s>\"  special\n     1       2  \"ab\"\n     2       6  \"<\"\n3 tokens\n");
  options_.parse_special = true;
  options_.add_special = false;
  EXPECT_EQ(run(), "     0       2  \"ab\"\n     1       4  \"<s>\"  special\n2 tokens\n");
}

TEST_F(TokenizeTest, IdsAlone) {
  options_.output = TokenizeOptions::Output::kIds;
  options_.text = "abba";
  EXPECT_EQ(run(), "4 2 1 0\n");
  options_.path = folder_ / "tokenizer.json";
  EXPECT_EQ(run(), "4 2 1 0\n") << "the file alone";
}

TEST_F(TokenizeTest, JsonShowsBytesThatAreNoText) {
  options_.output = TokenizeOptions::Output::kJson;
  options_.text = "a\xC3\xA9";
  const json root = json::parse(run());
  EXPECT_EQ(root["count"], 3);
  EXPECT_EQ(root["tokens"][0], json({{"id", 4}, {"text", "<s>"}, {"special", true}}));
  EXPECT_EQ(root["tokens"][2]["bytes"], json({0xC3}));
}

TEST_F(TokenizeTest, DecodesIdsHoweverTheyAreWritten) {
  options_.input = TokenizeOptions::Input::kIds;
  for (const char* ids : {"4 2 0", "[4, 2, 0]", "4,2\n0\n"}) {
    options_.text = ids;
    EXPECT_EQ(run(), "<s>aba\n");
  }
  options_.text = "4 99";
  EXPECT_THAT(run(), HasSubstr("99 is no token; the vocabulary has 8"));
  options_.text = "4 -1";
  EXPECT_THAT(run(), HasSubstr("\"-1\" is no token id"));
  options_.text = "99999999999";
  EXPECT_THAT(run(), HasSubstr("is no token id"));
}

TEST_F(TokenizeTest, AChatShowsThePromptAndWhatIsSpecialInIt) {
  options_.input = TokenizeOptions::Input::kChat;
  options_.text = R"([{"role": "user", "content": "a<end>"}])";
  EXPECT_EQ(run(),
            "Prompt\n  <s>a<end><end>\\n\n\nTokens\n     0       4  \"<s>\"  special\n"
            "     1       0  \"a\"\n     2       6  \"<\"\n     3       5  \"<end>\"  special\n"
            "     4       7  \"\\n\"\n5 tokens\n");
  options_.output = TokenizeOptions::Output::kJson;
  options_.text = R"({"messages": [{"role": "user", "content": "b"}], "tools": [{"name": "f"}]})";
  EXPECT_EQ(json::parse(run())["text"], "<s>b<end>\nT");
  options_.package.chat_template = "{{ messages[0].role }}";
  EXPECT_EQ(json::parse(run())["text"], "user");
}

TEST_F(TokenizeTest, LinesOfJsonGoBothWays) {
  options_.input = TokenizeOptions::Input::kLines;
  options_.text = "\"ab\\nb\"\n[4, 2]\n\"\"";
  EXPECT_EQ(run(), "[4,2,7,1]\n\"<s>ab\"\n[4]\n");
  options_.text = "\"a\"\n{}";
  EXPECT_THAT(run(), HasSubstr("line 2: expected a JSON string or an array of token ids"));
  options_.text = "[8]";
  EXPECT_THAT(run(), HasSubstr("line 1: 8 is no token; the vocabulary has 8"));
}

TEST_F(TokenizeTest, AChatThatMakesNoSenseIsAnError) {
  options_.input = TokenizeOptions::Input::kChat;
  const std::pair<const char*, const char*> cases[] = {
      {"nonsense", "JSON"},
      {"[]", "messages: expected an array of at least one message"},
      {R"({"messages": [{"role": "user"}, {}]})", "messages[1]: expected an object with a string \"role\""},
      {R"({"messages": [{"role": "user"}], "tools": 1})", "tools: expected an array"},
      {R"({"messages": [{"role": "user"}], "chat_template_kwargs": 1})", "chat_template_kwargs: expected"},
      {R"({"messages": [{"role": "user"}], "add_generation_prompt": 1})", "expected true or false"}};
  for (const auto& [request, message] : cases) {
    options_.text = request;
    EXPECT_THAT(run(), HasSubstr(message)) << request;
  }
  ASSERT_TRUE(write_file(folder_ / "tokenizer_config.json", "{}").ok());
  options_.text = R"([{"role": "user", "content": "a"}])";
  EXPECT_THAT(run(), HasSubstr("no chat template; give one with --template"));
}

}  // namespace
}  // namespace tercet::app
