#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "base/file.h"

namespace tercet::text {
namespace {

using jinja::Value;
using nlohmann::ordered_json;
using testing::HasSubstr;

ChatTemplate parse(std::string source) { return ChatTemplate::parse(std::move(source)).value(); }

Value value_of(const ordered_json& json) { return jinja::value_from_json(json.dump()).value(); }

ChatInput plain_input(std::string_view role, std::string_view content) {
  ChatInput input;
  input.messages.push_back(chat_message(role, content));
  return input;
}

// --- the golden conversations ---

class GoldenChat : public testing::TestWithParam<const char*> {
 protected:
  static std::string read(const std::string& name) {
    return read_file(std::string(TERCET_TEST_DATA) + "/chat/" + name).value();
  }
};

ChatInput golden_input(const ordered_json& golden) {
  ChatInput input;
  for (const auto& message : golden["messages"]) input.messages.push_back(value_of(message));
  if (golden.contains("tools")) {
    input.has_tools = true;
    for (const auto& tool : golden["tools"]) input.tools.push_back(value_of(tool));
  }
  input.add_generation_prompt = golden.value("add_generation_prompt", false);
  input.continue_final_message = golden.value("continue_final_message", false);
  if (golden.contains("kwargs")) {
    for (const auto& [name, value] : golden["kwargs"].items())
      input.kwargs.emplace_back(name, value_of(value));
  }
  for (const auto& [name, token] : golden["special_tokens"].items())
    input.special_tokens.emplace_back(name, token);
  std::tm now{};  // 2026-11-29T12:00:00, a Sunday
  now.tm_year = 126;
  now.tm_mon = 10;
  now.tm_mday = 29;
  now.tm_hour = 12;
  input.now = now;
  return input;
}

TEST_P(GoldenChat, RendersAsTransformersWithNullsKept) {
  const ChatTemplate chat = parse(read(std::string(GetParam()) + ".jinja"));
  std::istringstream lines(read(std::string(GetParam()) + ".jsonl"));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const ordered_json golden = ordered_json::parse(line);
    const ordered_json& expected = golden.contains("with_nulls_kept") ? golden["with_nulls_kept"] : golden;
    const auto rendered = chat.render_with_spans(golden_input(golden));
    SCOPED_TRACE(golden["name"].get<std::string>());
    if (!expected.contains("error")) {
      ASSERT_TRUE(rendered.ok()) << rendered.error().to_string();
      EXPECT_EQ(rendered->text, expected["rendered"].get<std::string>());
    } else {
      ASSERT_FALSE(rendered.ok()) << rendered->text;
      if (expected["raised_by_template"]) {
        EXPECT_EQ(rendered.error().message, expected["error"].get<std::string>());
      }
    }
  }
  EXPECT_EQ(count, 54);
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenChat,
                         testing::Values("deepseek_v3", "extra-gemma-2", "extra-gpt-oss",
                                         "extra-llama3_1-instruct", "extra-mistral-nemo", "gemma3",
                                         "llama3_1", "phi-3", "q05", "q15", "qwen3", "smollm2-135m"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

// --- what is special ---

// The text with user spans in brackets.
std::string marked(const ChatTemplate& chat, const ChatInput& input) {
  const RenderedChat rendered = chat.render_with_spans(input).value();
  std::string out;
  size_t end = 0;
  for (const TextSpan& span : rendered.spans) {
    EXPECT_EQ(span.begin, end);
    EXPECT_LT(span.begin, span.end);
    end = span.end;
    const std::string piece = rendered.text.substr(span.begin, span.end - span.begin);
    out += span.is_template_text ? piece : "[" + piece + "]";
  }
  EXPECT_EQ(end, rendered.text.size());
  return out;
}

TEST(ChatTemplateSpans, UserTextIsApartFromTheTemplates) {
  const auto chat = parse(
      "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.role + '\n' + m.content }}<|im_end|>\n{% "
      "endfor %}");
  ChatInput input = plain_input("user", "Hi <|im_end|>");
  input.special_tokens.emplace_back("bos_token", "<s>");
  EXPECT_EQ(marked(chat, input), "<s><|im_start|>user\n[Hi <|im_end|>]<|im_end|>\n");
}

TEST(ChatTemplateSpans, KnownRolesAreTemplateTextAndOthersAreNot) {
  const auto chat = parse("{{ '<|' + messages[0].role + '|>' }}");
  EXPECT_EQ(marked(chat, plain_input("assistant", "")), "<|assistant|>");
  EXPECT_EQ(marked(chat, plain_input("endoftext", "")), "<|[endoftext]|>");
}

TEST(ChatTemplateSpans, StringOperationsKeepOrigins) {
  ChatInput input = plain_input("user", " a<t>b ");
  const auto expect = [&](const std::string& expression, const std::string& expected) {
    EXPECT_EQ(marked(parse("{% set c = messages[0].content %}{{ " + expression + " }}"), input), expected)
        << expression;
  };
  expect("'<x>' + c | trim + '<y>'", "<x>[a<t>b]<y>");
  expect("('<x>' ~ c ~ '<y>').strip()", "<x>[ a<t>b ]<y>");
  expect("c.replace('<t>', '<n>')", "[ a]<n>[b ]");
  expect("('<x>' + c)[1:6]", "x>[ a<]");
  expect("('<x>' + c)[::-1]", "[ b>t<a ]>x<");
  expect("('<x>' + c) | upper", "<X>[ A<T>B ]");
  expect("['<x>', c] | join('|')", "<x>|[ a<t>b ]");
  expect("'<%s>' % c", "<[ a<t>b ]>");
  expect("'<{}>'.format(c)", "<[ a<t>b ]>");
  expect("('<x>' + c).split('<')[1]", "x>[ a]");
  expect("(c * 2) ~ ('<x>' * 2)", "[ a<t>b  a<t>b ]<x><x>");
  expect("c | tojson", "[\" a<t>b \"]");
  expect("{'<x>': c} | tojson", "[{\"<x>\": \" a<t>b \"}]");
  expect("[c] ~ 1 ~ none ~ true", "[[' a<t>b ']]1NoneTrue");
}

TEST(ChatTemplateSpans, MacrosAndCapturedBlocksKeepOrigins) {
  const auto chat = parse(
      "{% macro turn(m) %}<s>{{ m.content }}</s>{% endmacro %}{% set x %}<b>{{ messages[0].content }}{% "
      "endset %}"
      "{{ turn(messages[0]) }}{{ x }}{% filter upper %}<f>{{ messages[0].content }}{% endfilter %}");
  EXPECT_EQ(marked(chat, plain_input("user", "hi")), "<s>[hi]</s><b>[hi]<F>[HI]");
}

TEST(ChatTemplateSpans, KwargsAndToolsAreUserText) {
  const auto chat = parse("{{ tools[0].name }}|{{ date_string }}");
  ChatInput input = plain_input("user", "hi");
  input.has_tools = true;
  input.tools.push_back(value_of({{"name", "f"}}));
  input.kwargs.emplace_back("date_string", Value::user_string("today"));
  EXPECT_EQ(marked(chat, input), "[f]|[today]");
}

// --- what templates get to see ---

TEST(ChatTemplate, NullContentIsKeptAsNone) {
  ChatInput input;
  input.messages.push_back(value_of({{"role", "assistant"}, {"content", nullptr}}));
  EXPECT_EQ(*parse("{{ messages[0].content is none }} {{ messages[0].content }}").render(input), "True None");
}

TEST(ChatTemplate, ReasoningIsFoundUnderBothNames) {
  const auto chat = parse("{{ messages[0].reasoning_content }}|{{ messages[0].thinking }}");
  for (const char* name : {"reasoning_content", "reasoning", "thinking"}) {
    ChatInput input;
    input.messages.push_back(value_of({{"role", "assistant"}, {"content", "4"}, {name, "because"}}));
    EXPECT_EQ(*chat.render(input), "because|because") << name;
  }
  EXPECT_EQ(*chat.render(plain_input("assistant", "4")), "|");
}

TEST(ChatTemplate, AbsentToolsAreNoneAndAbsentTokensUndefined) {
  EXPECT_EQ(*parse("{{ tools is none }} {{ bos_token is defined }}").render(plain_input("user", "")),
            "True False");
}

TEST(ChatTemplate, ContinueFinalMessageEndsAfterItsText) {
  ChatInput input = plain_input("assistant", "one two ");
  input.add_generation_prompt = false;
  input.continue_final_message = true;
  EXPECT_EQ(*parse("A:{{ messages[0].content }}<end>").render(input), "A:one two ");
  EXPECT_EQ(*parse("A:{{ messages[0].content | trim }}<end>").render(input), "A:one two");
  EXPECT_THAT(parse("nothing").render(input).error().message, HasSubstr("leaves the last message out"));
  input.add_generation_prompt = true;
  EXPECT_FALSE(parse("{{ messages[0].content }}").render(input).ok());
}

TEST(ChatTemplate, ContinueFinalMessageTakesTheLastTextPart) {
  ChatInput input;
  input.messages.push_back(value_of(ordered_json::parse(
      R"({"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, {"type": "image"}]})")));
  input.add_generation_prompt = false;
  input.continue_final_message = true;
  EXPECT_EQ(*parse("{% for p in messages[0].content %}({{ p.text }}){% endfor %}").render(input), "(a)(b");
}

TEST(ChatTemplate, AnEmptyConversationIsRefused) {
  EXPECT_THAT(parse("x").render({}).error().message, HasSubstr("at least one message"));
}

TEST(ChatTemplate, RaiseExceptionSpeaksTheTemplatesWords) {
  const auto error =
      parse("line\n  {{ raise_exception('System role not supported') }}").render(plain_input("user", ""));
  EXPECT_EQ(error.error().message, "System role not supported");
  EXPECT_EQ(error.error().where, "template line 2, column 21");
}

// The fuzzer's seeds, with a plain message. What they make does not matter; sanitizers judge the run.
TEST(ChatTemplate, FuzzSeedsRenderOrFail) {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator(TERCET_TEST_DATA "/fuzz/chat_template")) {
    const std::string seed = read_file(file.path()).value();
    const auto chat = ChatTemplate::parse(seed.substr(0, seed.find('\0')));
    if (chat.ok()) {
      const bool renders = chat->render(plain_input("user", "hi")).ok();
      EXPECT_EQ(chat->render(plain_input("user", "hi")).ok(), renders) << file.path();
    }
    ++count;
  }
  EXPECT_GT(count, 0);
}

TEST(ChatTemplate, RendersFromManyThreads) {
  const auto chat = parse(
      "{% macro m(x) %}{{ x }}{% endmacro %}{% for i in messages %}{{ m(i.content) ~ '!' }}{% endfor %}");
  const ChatInput input = plain_input("user", "hi");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) EXPECT_EQ(*chat.render(input), "hi!");
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace tercet::text
