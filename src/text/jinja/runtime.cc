#include "text/jinja/runtime.h"

#include "text/jinja/error.h"

namespace tercet::text::jinja {

const Value* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent.get()) {
    if (const auto found = scope->variables.find(name); found != scope->variables.end())
      return &found->second;
  }
  return nullptr;
}

Runtime::~Runtime() {
  for (const auto& name_space : namespaces_) name_space->variables.clear();
  for (const auto& scope : scopes_) scope->variables.clear();
}

void Runtime::out_of_steps() const {
  fail("the template does not come to an end within " + std::to_string(limits_.max_steps) + " steps",
       ErrorCode::kExhausted);
}

void Runtime::too_deep() const {
  fail("the template calls itself or nests more than " + std::to_string(limits_.max_depth) + " levels deep",
       ErrorCode::kExhausted);
}

void Runtime::check_string_size(size_t bytes) const {
  if (bytes > limits_.max_string_bytes) {
    fail("the template makes a text longer than " + std::to_string(limits_.max_string_bytes) + " bytes",
         ErrorCode::kExhausted);
  }
}

Value Runtime::string(MarkedString text) {
  check_string_size(text.size());
  charge_bytes(text.size());
  return text;
}

Value Runtime::list(std::vector<Value> items, bool is_tuple) {
  charge(1 + kStepsPerElement * items.size());
  Value value(List{std::move(items), is_tuple});
  if (value.depth() > kMaxContainerDepth) fail("lists nest too deep", ErrorCode::kExhausted);
  return value;
}

Value Runtime::dict(Dict value) {
  charge(1 + kStepsPerElement * value.size());
  if (value.depth() > kMaxContainerDepth) fail("dicts nest too deep", ErrorCode::kExhausted);
  return value;
}

std::shared_ptr<Namespace> Runtime::make_namespace() {
  charge(1);
  return namespaces_.emplace_back(std::make_shared<Namespace>());
}

}  // namespace tercet::text::jinja
