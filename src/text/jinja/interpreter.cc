#include "text/jinja/interpreter.h"

#include <algorithm>
#include <utility>

#include "text/jinja/error.h"
#include "text/jinja/loop.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"

namespace tercet::text::jinja {
MarkedString Interpreter::run(const Body& body, const ScopePtr& variables) {
  MarkedString output;
  output_ = &output;
  execute(body, variables);
  output_ = nullptr;
  return output;
}

Interpreter::Flow Interpreter::execute(const Body& body, const ScopePtr& scope) {
  for (const Statement& statement : body) {
    const Flow flow = execute(statement, scope);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute(const Statement& statement, const ScopePtr& scope) {
  const Runtime::Nested nested(runtime_);
  position_ = statement.offset;
  return std::visit([&](const auto& node) { return run_node(node, scope); }, statement.node);
}

Interpreter::Flow Interpreter::run_node(const Data& data, const ScopePtr&) {
  append_text(runtime_, *output_, data.text);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run_node(const Print& print, const ScopePtr& scope) {
  append_text(runtime_, *output_, evaluate(*print.expression, scope));
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run_node(const If& statement, const ScopePtr& scope) {
  for (const auto& [test, body] : statement.branches) {
    if (evaluate(*test, scope).truthy()) return execute(body, scope);
  }
  return execute(statement.otherwise, scope);
}

Interpreter::Flow Interpreter::run_node(const For& statement, const ScopePtr& scope) {
  run_loop(statement, evaluate(*statement.iterable, scope), 0, scope);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run_node(const Set& statement, const ScopePtr& scope) {
  assign(statement.target, evaluate(*statement.value, scope), scope);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run_node(const SetBlock& statement, const ScopePtr& scope) {
  Value text = capture(statement.body, inner(scope));
  if (statement.filter) {
    filtered_block_ = std::move(text);
    text = evaluate(*statement.filter, scope);
  }
  assign(statement.target, std::move(text), scope);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run_node(const Macro& macro, const ScopePtr& scope) {
  scope->variables[macro.name] = make_macro(macro, scope);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run_node(const CallBlock& statement, const ScopePtr& scope) {
  const Value caller = make_macro(statement.caller, scope);
  const Expr& call = *statement.call;
  append_text(runtime_, *output_, evaluate_call(call, std::get<Call>(call.node), scope, &caller));
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run_node(const FilterBlock& statement, const ScopePtr& scope) {
  filtered_block_ = capture(statement.body, inner(scope));
  append_text(runtime_, *output_, evaluate(*statement.filter, scope));
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run_node(const With& statement, const ScopePtr& scope) {
  const ScopePtr body_scope = inner(scope);
  for (const auto& [target, value] : statement.assignments)
    assign(target, evaluate(*value, scope), body_scope);
  return execute(statement.body, body_scope);
}

Interpreter::Flow Interpreter::run_node(const LoopControl& statement, const ScopePtr&) {
  return statement.is_break ? Flow::kBreak : Flow::kContinue;
}

std::vector<Value> Interpreter::loop_items(const For& statement, const Value& iterable,
                                           const ScopePtr& scope) {
  std::vector<Value> items = iterate(runtime_, iterable);
  if (!statement.filter) return items;
  std::vector<Value> kept;
  for (Value& item : items) {
    const ScopePtr item_scope = inner(scope);
    assign(statement.target, item, item_scope);
    if (evaluate(*statement.filter, item_scope).truthy()) kept.push_back(std::move(item));
  }
  return kept;
}

void Interpreter::run_loop(const For& statement, const Value& iterable, size_t depth0,
                           const ScopePtr& scope) {
  const auto loop = std::make_shared<Loop>();
  loop->items = loop_items(statement, iterable, scope);
  loop->depth0 = depth0;
  if (statement.is_recursive) {
    loop->recurse = [this, &statement, depth0, scope](const Value& items) {
      MarkedString text;
      MarkedString* const outer = std::exchange(output_, &text);
      run_loop(statement, items, depth0 + 1, scope);
      output_ = outer;
      return runtime_.string(std::move(text));
    };
  }
  if (loop->items.empty()) execute(statement.otherwise, inner(scope));
  for (; loop->index0 < loop->items.size(); ++loop->index0) {
    runtime_.charge(1);
    const ScopePtr body_scope = inner(scope);
    assign(statement.target, loop->items[loop->index0], body_scope);
    body_scope->variables["loop"] = loop;
    if (execute(statement.body, body_scope) == Flow::kBreak) break;
  }
  loop->recurse = nullptr;
}

void Interpreter::assign(const Target& target, Value value, const ScopePtr& scope) {
  if (!target.items.empty()) {
    const std::vector<Value> items = iterate(runtime_, value);
    if (items.size() != target.items.size()) {
      fail("cannot unpack " + std::to_string(items.size()) + " value(s) into " +
           std::to_string(target.items.size()) + " name(s)");
    }
    for (size_t i = 0; i < items.size(); ++i) assign(target.items[i], items[i], scope);
  } else if (target.attribute.empty()) {
    scope->variables[target.name] = std::move(value);
  } else {
    const Value* object = scope->find(target.name);
    if (object == nullptr || object->name_space() == nullptr) {
      fail("cannot assign an attribute of '" + target.name + "': it is not a namespace");
    }
    object->name_space()->variables[target.attribute] = std::move(value);
  }
}

Value Interpreter::capture(const Body& body, const ScopePtr& scope) {
  MarkedString text;
  MarkedString* const outer = std::exchange(output_, &text);
  execute(body, scope);
  output_ = outer;
  return runtime_.string(std::move(text));
}

Value Interpreter::make_macro(const Macro& macro, const ScopePtr& scope) {
  runtime_.keep(scope);
  return Callable{macro.name, [this, &macro, scope](Runtime&, const Arguments& arguments) {
                    return call_macro(macro, scope, arguments);
                  }};
}

Value Interpreter::call_macro(const Macro& macro, const ScopePtr& definition_scope,
                              const Arguments& arguments) {
  const Runtime::Nested nested(runtime_);
  const ScopePtr scope = inner(definition_scope);
  bind_parameters(macro, arguments, scope);
  return capture(macro.body, scope);
}

// Missing arguments without a default are undefined. What has no parameter goes to `varargs` and `kwargs`; a
// call block's body comes as the named argument `caller`.
void Interpreter::bind_parameters(const Macro& macro, const Arguments& arguments, const ScopePtr& scope) {
  const auto& parameters = macro.parameters;
  const size_t num_positional = std::min(arguments.positional.size(), parameters.size());
  std::vector<bool> is_bound(parameters.size(), false);
  for (size_t i = 0; i < num_positional; ++i) {
    scope->variables[parameters[i].name] = arguments.positional[i];
    is_bound[i] = true;
  }
  const std::vector<Value> rest(arguments.positional.begin() + static_cast<std::ptrdiff_t>(num_positional),
                                arguments.positional.end());
  Dict named_rest;
  for (const auto& [name, value] : arguments.named) {
    const auto parameter = std::find_if(parameters.begin(), parameters.end(),
                                        [&](const Parameter& p) { return p.name == name; });
    if (parameter == parameters.end() && name != "caller") {
      if (!macro.takes_kwargs) fail("macro '" + macro.name + "' takes no keyword argument '" + name + "'");
      named_rest.insert(Value::template_string(name), value);
      continue;
    }
    if (parameter != parameters.end()) {
      const auto i = static_cast<size_t>(parameter - parameters.begin());
      if (is_bound[i]) fail("macro '" + macro.name + "' got two values for '" + name + "'");
      is_bound[i] = true;
    }
    scope->variables[name] = value;
  }
  if (!rest.empty() && !macro.takes_varargs) {
    fail("macro '" + macro.name + "' takes not more than " + std::to_string(parameters.size()) +
         " argument(s)");
  }
  if (macro.takes_varargs) scope->variables["varargs"] = runtime_.list(rest, true);
  if (macro.takes_kwargs) scope->variables["kwargs"] = runtime_.dict(std::move(named_rest));
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (is_bound[i]) continue;
    scope->variables[parameters[i].name] =
        parameters[i].default_value
            ? evaluate(*parameters[i].default_value, scope)
            : Value::undefined("parameter '" + parameters[i].name + "' was not provided");
  }
}

}  // namespace tercet::text::jinja
