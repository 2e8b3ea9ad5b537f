#include "text/chat_request.h"

#include <fmt/format.h>

namespace tercet::text {
namespace {

using jinja::Dict;
using jinja::List;
using jinja::Value;

Error invalid(std::string field, std::string message) {
  return {ErrorCode::kInvalidArgument, std::move(message), std::move(field)};
}

Status read_messages(const Value& value, ChatInput& input) {
  const List* list = value.list();
  if (list == nullptr || list->items.empty())
    return invalid("messages", "expected an array of at least one message");
  for (size_t i = 0; i < list->items.size(); ++i) {
    const Dict* message = list->items[i].dict();
    const Value* role = message != nullptr ? message->find("role") : nullptr;
    if (role == nullptr || role->string() == nullptr)
      return invalid(fmt::format("messages[{}]", i), "expected an object with a string \"role\"");
  }
  input.messages = list->items;
  return {};
}

Status read_flag(const Dict& request, const char* name, bool& out) {
  const Value* value = request.find(name);
  if (value == nullptr || value->is_none()) return {};
  const bool* flag = value->get_if<bool>();
  if (flag == nullptr) return invalid(name, "expected true or false");
  out = *flag;
  return {};
}

}  // namespace

Result<ChatInput> chat_input_from_json(std::string_view json) {
  TERCET_ASSIGN(const Value value, jinja::value_from_json(json));
  ChatInput input;
  const Dict* request = value.dict();
  if (request == nullptr) {
    TERCET_TRY(read_messages(value, input));
    return input;
  }
  const Value* messages = request->find("messages");
  TERCET_TRY(read_messages(messages != nullptr ? *messages : Value(), input));
  if (const Value* tools = request->find("tools"); tools != nullptr && !tools->is_none()) {
    if (tools->list() == nullptr) return invalid("tools", "expected an array");
    input.tools = tools->list()->items;
    input.has_tools = true;
  }
  if (const Value* kwargs = request->find("chat_template_kwargs"); kwargs != nullptr && !kwargs->is_none()) {
    if (kwargs->dict() == nullptr) return invalid("chat_template_kwargs", "expected an object");
    for (const auto& [name, argument] : kwargs->dict()->entries())
      input.kwargs.emplace_back(name.string()->bytes(), argument);
  }
  TERCET_TRY(read_flag(*request, "continue_final_message", input.continue_final_message));
  input.add_generation_prompt = !input.continue_final_message;
  TERCET_TRY(read_flag(*request, "add_generation_prompt", input.add_generation_prompt));
  return input;
}

}  // namespace tercet::text
