#include "text/chat_template.h"

#include <algorithm>

#include "text/jinja/strings.h"

namespace tercet::text {
namespace {

using jinja::Dict;
using jinja::List;
using jinja::MarkedString;
using jinja::None;
using jinja::Origin;
using jinja::Value;

// Stands behind the message to continue; the output is cut there. The trailing space shows whether the
// template trims.
constexpr std::string_view kContinueMarker = "TERCET_CONTINUE_FINAL_MESSAGE ";

Error invalid(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message), "chat"}; }

// Templates write special tokens as '<|' + message.role + '|>', so the names of roles count as template text.
// No other role does: a user could spell a token with it.
bool is_known_role(std::string_view role) {
  static constexpr std::string_view kRoles[] = {"system",       "developer",  "user",    "assistant",
                                                "model",        "tool",       "ipython", "function",
                                                "tool_results", "observation"};
  return std::find(std::begin(kRoles), std::end(kRoles), role) != std::end(kRoles);
}

const Value* present(const Dict& message, std::string_view key) {
  const Value* value = message.find(key);
  return value != nullptr && !value->is_none() ? value : nullptr;
}

// The message as templates expect it: its role marked, and its reasoning under both names that templates look
// for.
Value prepare_message(const Value& message) {
  const Dict* dict = message.dict();
  if (dict == nullptr) return message;
  Dict result = *dict;
  const Value* role = dict->find("role");
  if (role != nullptr && role->string() != nullptr && is_known_role(role->string()->bytes())) {
    result.set("role", Value::template_string(role->string()->bytes()));
  }
  for (const std::string_view source : {"reasoning_content", "reasoning", "thinking"}) {
    const Value* reasoning = present(*dict, source);
    if (reasoning == nullptr) continue;
    for (const std::string_view name : {"reasoning_content", "thinking"}) {
      if (present(*dict, name) == nullptr) result.set(name, *reasoning);
    }
    break;
  }
  return result;
}

Value with_marker(const MarkedString& text) {
  MarkedString marked = text;
  marked.append(kContinueMarker, Origin::kUser);
  return marked;
}

// Puts the marker behind the message's text, or behind the last text part of a list of parts.
Result<Value> mark_final_message(const Value& message) {
  const Value* content = message.dict() != nullptr ? message.dict()->find("content") : nullptr;
  if (content == nullptr)
    return invalid("continue_final_message: the last message has no content to continue");
  Dict result = *message.dict();
  if (const MarkedString* text = content->string()) {
    result.set("content", with_marker(*text));
    return Value(std::move(result));
  }
  if (const List* parts = content->list()) {
    std::vector<Value> items = parts->items;
    for (size_t i = items.size(); i-- > 0;) {
      const Dict* part = items[i].dict();
      const Value* text = part != nullptr ? part->find("text") : nullptr;
      if (text == nullptr || text->string() == nullptr) continue;
      Dict marked_part = *part;
      marked_part.set("text", with_marker(*text->string()));
      items[i] = std::move(marked_part);
      result.set("content", List{std::move(items)});
      return Value(std::move(result));
    }
  }
  return invalid("continue_final_message: the last message has no text to continue");
}

Result<MarkedString> cut_at_marker(const MarkedString& rendered) {
  const std::string_view marker = kContinueMarker.substr(0, kContinueMarker.size() - 1);
  const size_t found = rendered.bytes().rfind(marker);
  if (found == std::string::npos) {
    return invalid("continue_final_message: the template leaves the last message out of the prompt");
  }
  const MarkedString cut = rendered.slice(0, found);
  const bool keeps_spaces = rendered.bytes().compare(found, kContinueMarker.size(), kContinueMarker) == 0;
  return keeps_spaces ? cut : jinja::strip(cut, nullptr, jinja::Sides::kRight);
}

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return local;
}

std::vector<TextSpan> spans_of(const MarkedString& text) {
  std::vector<TextSpan> spans;
  size_t position = 0;
  for (const auto& span : text.template_spans()) {
    if (span.begin > position) spans.push_back({position, span.begin, false});
    spans.push_back({span.begin, span.end, true});
    position = span.end;
  }
  if (position < text.size()) spans.push_back({position, text.size(), false});
  return spans;
}

}  // namespace

Value chat_message(std::string_view role, std::string_view content) {
  Dict message;
  message.set("role", Value::user_string(role));
  message.set("content", Value::user_string(content));
  return message;
}

Result<ChatTemplate> ChatTemplate::parse(std::string source, const jinja::Limits& limits) {
  TERCET_ASSIGN(jinja::Template parsed, jinja::Template::parse(source, limits));
  return ChatTemplate(std::move(source), std::move(parsed));
}

Result<MarkedString> ChatTemplate::render_marked(const ChatInput& input) const {
  if (tool_use_ != nullptr && input.has_tools) return tool_use_->render_marked(input);
  if (input.messages.empty()) return invalid("a conversation needs at least one message");
  if (input.continue_final_message && input.add_generation_prompt) {
    return invalid("continue_final_message and add_generation_prompt exclude each other");
  }
  List messages;
  for (const Value& message : input.messages) messages.items.push_back(prepare_message(message));
  if (input.continue_final_message) {
    TERCET_ASSIGN(messages.items.back(), mark_final_message(messages.items.back()));
  }
  std::vector<std::pair<std::string, Value>> variables;
  for (const auto& [name, token] : input.special_tokens)
    variables.emplace_back(name, Value::template_string(token));
  variables.emplace_back("messages", std::move(messages));
  variables.emplace_back("tools", input.has_tools ? Value(List{input.tools}) : Value(None{}));
  variables.emplace_back("documents", None{});
  variables.emplace_back("add_generation_prompt", input.add_generation_prompt);
  variables.insert(variables.end(), input.kwargs.begin(), input.kwargs.end());
  TERCET_ASSIGN(MarkedString rendered, template_.render(variables, input.now ? *input.now : local_time()));
  if (input.continue_final_message) return cut_at_marker(rendered);
  return rendered;
}

Result<std::string> ChatTemplate::render(const ChatInput& input) const {
  TERCET_ASSIGN(const MarkedString rendered, render_marked(input));
  return rendered.bytes();
}

Result<RenderedChat> ChatTemplate::render_with_spans(const ChatInput& input) const {
  TERCET_ASSIGN(const MarkedString rendered, render_marked(input));
  return RenderedChat{rendered.bytes(), spans_of(rendered)};
}

}  // namespace tercet::text
