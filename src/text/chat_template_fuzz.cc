// Fuzzes templates together with conversations. An input is a template, a NUL byte, and a JSON object with
// "messages" and optionally "tools", "kwargs" and "continue_final_message"; without the NUL there is one
// plain message.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "text/chat_template.h"

namespace {

using tercet::text::ChatInput;
using tercet::text::jinja::Value;

std::vector<Value> items_of(const tercet::text::jinja::Dict& request, std::string_view key) {
  const Value* value = request.find(key);
  return value != nullptr && value->list() != nullptr ? value->list()->items : std::vector<Value>();
}

ChatInput input_from(std::string_view json) {
  ChatInput input;
  input.now = std::tm{};
  input.special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  const auto value = tercet::text::jinja::value_from_json(json);
  if (!value.ok() || value->dict() == nullptr) {
    input.messages.push_back(tercet::text::chat_message("user", json));
    return input;
  }
  const auto& request = *value->dict();
  input.messages = items_of(request, "messages");
  input.tools = items_of(request, "tools");
  input.has_tools = !input.tools.empty();
  const Value* continues = request.find("continue_final_message");
  input.continue_final_message = continues != nullptr && continues->truthy();
  input.add_generation_prompt = !input.continue_final_message;
  if (const Value* kwargs = request.find("kwargs"); kwargs != nullptr && kwargs->dict() != nullptr) {
    for (const auto& [name, kwarg] : kwargs->dict()->entries()) {
      input.kwargs.emplace_back(name.string()->bytes(), kwarg);
    }
  }
  return input;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t split = bytes.find('\0');
  const std::string_view json = split == std::string_view::npos ? "hello" : bytes.substr(split + 1);
  tercet::text::jinja::Limits limits;
  limits.max_steps = 100'000;
  limits.max_string_bytes = 1 << 20;
  const auto chat = tercet::text::ChatTemplate::parse(std::string(bytes.substr(0, split)), limits);
  if (!chat.ok()) return 0;
  const auto rendered = chat->render_with_spans(input_from(json));
  if (!rendered.ok()) return 0;
  size_t end = 0;
  for (const auto& span : rendered->spans) {
    TERCET_CHECK(span.begin == end && span.end > span.begin);
    end = span.end;
  }
  TERCET_CHECK(end == rendered->text.size());
  return 0;
}
