#include <utility>

#include "text/jinja/builtins.h"
#include "text/jinja/error.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/loop.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"

namespace tercet::text::jinja {
namespace {

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

}  // namespace

Value Interpreter::evaluate(const Expr& expr, const ScopePtr& scope) {
  const Runtime::Nested nested(runtime_);
  position_ = expr.offset;
  return std::visit(Overloaded{
                        [&](const Constant& node) { return node.value; },
                        [&](const Name& node) { return evaluate_name(node, scope); },
                        [&](const ListDisplay& node) {
                          return runtime_.list(evaluate_all(node.items, scope), node.is_tuple);
                        },
                        [&](const DictDisplay& node) { return evaluate_dict(node, scope); },
                        [&](const Attribute& node) {
                          const Value object = evaluate(*node.object, scope);
                          position_ = expr.offset;
                          return attribute(object, node.name);
                        },
                        [&](const Subscript& node) {
                          const Value object = evaluate(*node.object, scope);
                          const Value index = evaluate(*node.index, scope);
                          position_ = expr.offset;
                          return subscript(runtime_, object, index);
                        },
                        [&](const Slice& node) { return evaluate_slice(expr, node, scope); },
                        [&](const Call& node) { return evaluate_call(expr, node, scope, nullptr); },
                        [&](const Filter& node) { return evaluate_filter(expr, node, scope); },
                        [&](const Test& node) { return evaluate_test(expr, node, scope); },
                        [&](const Unary& node) { return evaluate_unary(expr, node, scope); },
                        [&](const Binary& node) { return evaluate_binary(expr, node, scope); },
                        [&](const Concat& node) { return evaluate_concat(expr, node, scope); },
                        [&](const Comparison& node) { return evaluate_comparison(expr, node, scope); },
                        [&](const Logical& node) {
                          Value left = evaluate(*node.left, scope);
                          return left.truthy() == node.is_and ? evaluate(*node.right, scope) : left;
                        },
                        [&](const Conditional& node) { return evaluate_conditional(node, scope); },
                    },
                    expr.node);
}

Value Interpreter::evaluate_name(const Name& name, const ScopePtr& scope) {
  if (const Value* found = scope->find(name.name)) return *found;
  if (auto global = find_global(name.name)) return *std::move(global);
  return Value::undefined("'" + name.name + "' is undefined");
}

std::vector<Value> Interpreter::evaluate_all(const std::vector<ExprPtr>& items, const ScopePtr& scope) {
  std::vector<Value> values;
  values.reserve(items.size());
  for (const auto& item : items) values.push_back(evaluate(*item, scope));
  return values;
}

Value Interpreter::evaluate_dict(const DictDisplay& display, const ScopePtr& scope) {
  Dict dict;
  for (const auto& [key_expr, value_expr] : display.entries) {
    const Value key = evaluate(*key_expr, scope);
    if (!dict.insert(key, evaluate(*value_expr, scope))) {
      fail(std::string("unhashable type: '") + key.type_name() + "'");
    }
  }
  return runtime_.dict(std::move(dict));
}

Value Interpreter::evaluate_slice(const Expr& expr, const Slice& node, const ScopePtr& scope) {
  const Value object = evaluate(*node.object, scope);
  const auto part = [&](const ExprPtr& part_expr) {
    return part_expr ? evaluate(*part_expr, scope) : Value(None{});
  };
  const Value start = part(node.start);
  const Value stop = part(node.stop);
  const Value step = part(node.step);
  position_ = expr.offset;
  return slice(runtime_, object, start, stop, step);
}

Arguments Interpreter::evaluate_arguments(const CallArguments& arguments, const ScopePtr& scope) {
  Arguments result;
  result.positional = evaluate_all(arguments.positional, scope);
  for (const auto& [name, value] : arguments.named) result.named.emplace_back(name, evaluate(*value, scope));
  if (arguments.star) {
    for (Value& item : iterate(runtime_, evaluate(*arguments.star, scope))) {
      result.positional.push_back(std::move(item));
    }
  }
  if (arguments.double_star) {
    const Value named = evaluate(*arguments.double_star, scope);
    if (named.dict() == nullptr) fail("argument after ** must be a mapping");
    runtime_.charge(named.dict()->size());
    for (const auto& [key, value] : named.dict()->entries()) {
      if (key.string() == nullptr) fail("keywords must be strings");
      result.named.emplace_back(key.string()->bytes(), value);
    }
  }
  return result;
}

Value Interpreter::evaluate_call(const Expr& expr, const Call& node, const ScopePtr& scope,
                                 const Value* caller) {
  const Value callee = evaluate(*node.callee, scope);
  Arguments arguments = evaluate_arguments(node.arguments, scope);
  if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
  position_ = expr.offset;
  return call(callee, arguments);
}

Value Interpreter::call(const Value& callee, const Arguments& arguments) {
  if (callee.is_undefined()) fail_undefined(callee);
  if (const auto* function = callee.callable()) return function->call(runtime_, arguments);
  if (const auto* loop = callee.loop()) {
    if (!loop->recurse) fail("this loop is not recursive: write {% for ... recursive %}");
    if (arguments.positional.size() != 1) fail("loop() takes one argument");
    const auto recurse = loop->recurse;
    return recurse(arguments.positional[0]);
  }
  fail(std::string("'") + callee.type_name() + "' object is not callable");
}

Value Interpreter::evaluate_filter(const Expr& expr, const Filter& node, const ScopePtr& scope) {
  const Value input = node.input ? evaluate(*node.input, scope) : std::exchange(filtered_block_, Value());
  const Arguments arguments = evaluate_arguments(node.arguments, scope);
  position_ = expr.offset;
  const Method filter = find_filter(node.name);
  if (filter == nullptr) fail("No filter named '" + node.name + "'.");
  return filter(runtime_, input, arguments);
}

Value Interpreter::evaluate_test(const Expr& expr, const Test& node, const ScopePtr& scope) {
  const Value input = evaluate(*node.input, scope);
  const Arguments arguments = evaluate_arguments(node.arguments, scope);
  position_ = expr.offset;
  const Method test = find_test(node.name);
  if (test == nullptr) fail("No test named '" + node.name + "'.");
  return test(runtime_, input, arguments);
}

Value Interpreter::evaluate_unary(const Expr& expr, const Unary& node, const ScopePtr& scope) {
  const Value operand = evaluate(*node.operand, scope);
  position_ = expr.offset;
  if (node.op == UnaryOp::kNot) return !operand.truthy();
  if (node.op == UnaryOp::kNegate) return negate(operand);
  return negate(negate(operand));
}

Value Interpreter::evaluate_binary(const Expr& expr, const Binary& node, const ScopePtr& scope) {
  const Value left = evaluate(*node.left, scope);
  const Value right = evaluate(*node.right, scope);
  position_ = expr.offset;
  return apply_binary(runtime_, node.op, left, right);
}

Value Interpreter::evaluate_concat(const Expr& expr, const Concat& node, const ScopePtr& scope) {
  MarkedString text;
  for (const auto& part : node.parts) {
    const Value value = evaluate(*part, scope);
    position_ = expr.offset;
    append_text(runtime_, text, value);
  }
  return runtime_.string(std::move(text));
}

Value Interpreter::evaluate_comparison(const Expr& expr, const Comparison& node, const ScopePtr& scope) {
  Value left = evaluate(*node.first, scope);
  for (const auto& [op, right_expr] : node.rest) {
    Value right = evaluate(*right_expr, scope);
    position_ = expr.offset;
    if (!compare(runtime_, op, left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::evaluate_conditional(const Conditional& node, const ScopePtr& scope) {
  if (evaluate(*node.test, scope).truthy()) return evaluate(*node.then, scope);
  if (node.otherwise) return evaluate(*node.otherwise, scope);
  return Value::undefined("the inline if-expression was false and has no else");
}

}  // namespace tercet::text::jinja
