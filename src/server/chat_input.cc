// parse_chat_input of openai_request.h.
#include <fmt/format.h>

#include "server/fields.h"
#include "server/openai_request.h"
#include "text/jinja/json.h"

namespace tercet::server {
namespace {

using text::jinja::Dict;
using text::jinja::List;

// The text of a list of parts, joined by newlines as vLLM joins them.
Result<Value> joined_parts(const List& parts, const std::string& field) {
  std::string joined;
  for (size_t i = 0; i < parts.items.size(); ++i) {
    const std::string name = fmt::format("{}[{}]", field, i);
    const Value& part = parts.items[i];
    if (part.dict() == nullptr) return wrong_type(name, "an object with a type", part);
    const Fields fields(part, name + ".");
    std::string type = "text";
    TERCET_TRY(fields.read("type", type));
    if (type != "text" && type != "input_text" && type != "refusal") {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("is a part of type {}; this model takes text only", type), name};
    }
    std::string text;
    TERCET_TRY(fields.read(type == "refusal" ? "refusal" : "text", text));
    if (i > 0) joined += '\n';
    joined += text;
  }
  return Value::user_string(joined);
}

// Templates expect the arguments of a call as an object; the API has them as JSON in a string.
Result<Value> with_parsed_arguments(const Value& calls, const std::string& field) {
  if (calls.list() == nullptr) return wrong_type(field, "an array", calls);
  std::vector<Value> parsed;
  for (size_t i = 0; i < calls.list()->items.size(); ++i) {
    const Value& call = calls.list()->items[i];
    if (call.dict() == nullptr) return wrong_type(fmt::format("{}[{}]", field, i), "an object", call);
    const Value* function = call.dict()->find("function");
    const Value* arguments =
        function != nullptr && function->dict() != nullptr ? function->dict()->find("arguments") : nullptr;
    Dict copy = *call.dict();
    if (arguments != nullptr && arguments->string() != nullptr) {
      auto object = text::jinja::value_from_json(arguments->string()->bytes());
      // What a model wrote need not be JSON; then the template sees its text.
      if (object.ok()) {
        Dict called = *function->dict();
        called.set("arguments", *std::move(object));
        copy.set("function", Value(std::move(called)));
      }
    }
    parsed.emplace_back(std::move(copy));
  }
  return Value(List{std::move(parsed)});
}

Result<Value> parse_message(const Value& message, const std::string& name) {
  if (message.dict() == nullptr) return wrong_type(name, "an object", message);
  const Fields fields(message, name + ".");
  std::string role;
  TERCET_TRY(fields.read("role", role));
  if (role.empty()) return invalid(name + ".role", "is missing");
  Dict result = *message.dict();
  // OpenAI's newer name; templates know the older one.
  if (role == "developer") result.set("role", Value::user_string("system"));
  if (const Value* content = fields.find("content"); content != nullptr && content->string() == nullptr) {
    if (content->list() == nullptr)
      return wrong_type(name + ".content", "a string or an array of parts", *content);
    TERCET_ASSIGN(Value text, joined_parts(*content->list(), name + ".content"));
    result.set("content", std::move(text));
  }
  if (const Value* calls = fields.find("tool_calls")) {
    TERCET_ASSIGN(Value parsed, with_parsed_arguments(*calls, name + ".tool_calls"));
    result.set("tool_calls", std::move(parsed));
  } else if (fields.find("content") == nullptr) {
    return invalid(name + ".content", "is missing");
  }
  return Value(std::move(result));
}

Status read_tools(const Fields& fields, text::ChatInput& input) {
  const Value* tools = fields.find("tools");
  const Value* choice = fields.find("tool_choice");
  const bool is_none =
      choice != nullptr && choice->string() != nullptr && choice->string()->bytes() == "none";
  const bool is_auto =
      choice == nullptr || (choice->string() != nullptr && choice->string()->bytes() == "auto");
  if (!is_none && !is_auto)
    return Error{ErrorCode::kUnsupported, "must be auto or none: no other choice can be enforced",
                 "tool_choice"};
  if (tools == nullptr || is_none) return {};
  if (tools->list() == nullptr) return wrong_type("tools", "an array", *tools);
  input.tools = tools->list()->items;
  input.has_tools = !input.tools.empty();
  return {};
}

}  // namespace

Result<text::ChatInput> parse_chat_input(const Value& body) {
  const Fields fields(body);
  text::ChatInput input;
  const Value* messages = fields.find("messages");
  if (messages == nullptr) return invalid("messages", "is missing");
  if (messages->list() == nullptr) return wrong_type("messages", "an array", *messages);
  if (messages->list()->items.empty()) return invalid("messages", "is empty, expected at least one");
  for (size_t i = 0; i < messages->list()->items.size(); ++i) {
    TERCET_ASSIGN(Value message, parse_message(messages->list()->items[i], fmt::format("messages[{}]", i)));
    input.messages.push_back(std::move(message));
  }
  TERCET_TRY(read_tools(fields, input));
  for (const char* name : {"reasoning_effort", "documents"}) {
    if (const Value* value = fields.find(name)) input.kwargs.emplace_back(name, *value);
  }
  if (const Value* kwargs = fields.find("chat_template_kwargs")) {
    if (kwargs->dict() == nullptr) return wrong_type("chat_template_kwargs", "an object", *kwargs);
    for (const auto& [name, value] : kwargs->dict()->entries())
      input.kwargs.emplace_back(name.string()->bytes(), value);
  }
  TERCET_TRY(fields.read("continue_final_message", input.continue_final_message));
  input.add_generation_prompt = !input.continue_final_message;
  TERCET_TRY(fields.read("add_generation_prompt", input.add_generation_prompt));
  if (input.add_generation_prompt && input.continue_final_message)
    return invalid("continue_final_message", "does not go with add_generation_prompt");
  return input;
}

}  // namespace tercet::server
