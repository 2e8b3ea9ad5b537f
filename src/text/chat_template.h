// ChatTemplate: a conversation to the prompt that a model was trained on.
//
// The template comes with the model (tokenizer.chat_template in GGUF, chat_template in tokenizer_config.json)
// and is rendered as Hugging Face's transformers renders it; docs/text.md lists the differences. Immutable
// after parse(): any number of threads may render at once.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/jinja/json.h"
#include "text/jinja/template.h"
#include "text/jinja/value.h"
#include "text/text_span.h"

namespace tercet::text {

// What a template gets to see. Messages, tools and kwargs are JSON-like values: jinja::value_from_json passes
// an OpenAI request through, chat_message() makes the plain ones. Every string in them is the user's text.
struct ChatInput {
  std::vector<jinja::Value> messages;  // dicts with "role" and "content"; at least one
  std::vector<jinja::Value> tools;
  bool has_tools = false;  // false: `tools` is none for the template, as if none were given
  // Ends the prompt with the start of the assistant's turn.
  bool add_generation_prompt = true;
  // Leaves the last message open for the model to go on with. Excludes add_generation_prompt.
  bool continue_final_message = false;
  // Further variables (enable_thinking, date_string, ...). They win over the variables above.
  std::vector<std::pair<std::string, jinja::Value>> kwargs;
  // bos_token, eos_token, ...: template text. One that is absent is undefined for the template.
  std::vector<std::pair<std::string, std::string>> special_tokens;
  // The local time that strftime_now() shows; absent: the system's clock.
  std::optional<std::tm> now;
};

jinja::Value chat_message(std::string_view role, std::string_view content);

struct RenderedChat {
  std::string text;
  std::vector<TextSpan> spans;  // cover the text in order, alternating, none empty
};

class ChatTemplate {
 public:
  // Errors name line and column.
  static Result<ChatTemplate> parse(std::string source, const jinja::Limits& limits = {});

  // Errors: no messages; what the template refuses (raise_exception, with its words) or cannot compute, with
  // line and column; a limit (kExhausted).
  Result<std::string> render(const ChatInput& input) const;
  Result<RenderedChat> render_with_spans(const ChatInput& input) const;

  // Renders with `other` where the request has tools.
  void set_tool_use(ChatTemplate other) {
    tool_use_ = std::make_shared<const ChatTemplate>(std::move(other));
  }

  const std::string& source() const { return source_; }

 private:
  ChatTemplate(std::string source, jinja::Template parsed)
      : source_(std::move(source)), template_(std::move(parsed)) {}
  Result<jinja::MarkedString> render_marked(const ChatInput& input) const;
  std::string source_;
  jinja::Template template_;
  std::shared_ptr<const ChatTemplate> tool_use_;  // may be null
};

}  // namespace tercet::text
