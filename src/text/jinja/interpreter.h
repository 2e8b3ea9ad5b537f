// Interpreter: runs a template's tree. The rules of scope are Jinja's: {% for %}, {% macro %}, {% call %}, {%
// filter %},
// {% with %} and block {% set %} have variables of their own, {% if %} has not; a macro sees the variables of
// the place where it is defined.
//
// One per render, one thread. Throws TemplateError; position() then says where.
#pragma once

#include <memory>
#include <string_view>

#include "text/jinja/ast.h"
#include "text/jinja/runtime.h"

namespace tercet::text::jinja {

class Interpreter {
 public:
  explicit Interpreter(Runtime& runtime) : runtime_(runtime) {}

  // The template's output with these variables. `body` must outlive the runtime.
  MarkedString run(const Body& body, const std::shared_ptr<Scope>& variables);

  // Offset in the source of what was evaluated last.
  size_t position() const { return position_; }

 private:
  using ScopePtr = std::shared_ptr<Scope>;
  enum class Flow { kNext, kBreak, kContinue };

  // statements (interpreter.cc)
  Flow execute(const Body& body, const ScopePtr& scope);
  Flow execute(const Statement& statement, const ScopePtr& scope);
  Flow run_node(const Data& data, const ScopePtr& scope);
  Flow run_node(const Print& print, const ScopePtr& scope);
  Flow run_node(const If& statement, const ScopePtr& scope);
  Flow run_node(const For& statement, const ScopePtr& scope);
  Flow run_node(const Set& statement, const ScopePtr& scope);
  Flow run_node(const SetBlock& statement, const ScopePtr& scope);
  Flow run_node(const Macro& macro, const ScopePtr& scope);
  Flow run_node(const CallBlock& statement, const ScopePtr& scope);
  Flow run_node(const FilterBlock& statement, const ScopePtr& scope);
  Flow run_node(const With& statement, const ScopePtr& scope);
  Flow run_node(const LoopControl& statement, const ScopePtr& scope);
  // `depth0` counts the calls loop(...) around this one.
  void run_loop(const For& statement, const Value& iterable, size_t depth0, const ScopePtr& scope);
  std::vector<Value> loop_items(const For& statement, const Value& iterable, const ScopePtr& scope);
  void assign(const Target& target, Value value, const ScopePtr& scope);
  Value make_macro(const Macro& macro, const ScopePtr& scope);
  Value call_macro(const Macro& macro, const ScopePtr& definition_scope, const Arguments& arguments);
  void bind_parameters(const Macro& macro, const Arguments& arguments, const ScopePtr& scope);
  // The output of `body` as a string of its own.
  Value capture(const Body& body, const ScopePtr& scope);
  static ScopePtr inner(const ScopePtr& scope) { return std::make_shared<Scope>(Scope{scope, {}}); }

  // expressions (interpreter_expressions.cc)
  Value evaluate(const Expr& expr, const ScopePtr& scope);
  Value evaluate_name(const Name& name, const ScopePtr& scope);
  Value evaluate_dict(const DictDisplay& display, const ScopePtr& scope);
  Value evaluate_slice(const Expr& expr, const Slice& slice, const ScopePtr& scope);
  Value evaluate_call(const Expr& expr, const Call& call, const ScopePtr& scope, const Value* caller);
  Value evaluate_filter(const Expr& expr, const Filter& filter, const ScopePtr& scope);
  Value evaluate_test(const Expr& expr, const Test& test, const ScopePtr& scope);
  Value evaluate_unary(const Expr& expr, const Unary& unary, const ScopePtr& scope);
  Value evaluate_binary(const Expr& expr, const Binary& binary, const ScopePtr& scope);
  Value evaluate_concat(const Expr& expr, const Concat& concat, const ScopePtr& scope);
  Value evaluate_comparison(const Expr& expr, const Comparison& comparison, const ScopePtr& scope);
  Value evaluate_conditional(const Conditional& conditional, const ScopePtr& scope);
  std::vector<Value> evaluate_all(const std::vector<ExprPtr>& items, const ScopePtr& scope);
  Arguments evaluate_arguments(const CallArguments& arguments, const ScopePtr& scope);
  Value call(const Value& callee, const Arguments& arguments);

  Runtime& runtime_;
  MarkedString* output_ = nullptr;  // of the innermost capture
  Value filtered_block_;            // what a filter without input reads
  size_t position_ = 0;
};

}  // namespace tercet::text::jinja
