// The syntax tree of a template. Built once by the parser, then read only: any number of threads may render
// from it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/value.h"

namespace tercet::text::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<const Expr>;

struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr star;         // *args, may be null
  ExprPtr double_star;  // **kwargs, may be null
};

struct Constant {
  Value value;
};
struct Name {
  std::string name;
};
struct ListDisplay {
  std::vector<ExprPtr> items;
  bool is_tuple;
};
struct DictDisplay {
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};
struct Attribute {
  ExprPtr object;
  std::string name;
};
struct Subscript {
  ExprPtr object, index;
};
struct Slice {
  ExprPtr object, start, stop, step;  // all but the object may be null
};
struct Call {
  ExprPtr callee;
  CallArguments arguments;
};
// `input` is null for the first filter of a {% filter %} or {% set %} block: it reads the block's text.
struct Filter {
  ExprPtr input;
  std::string name;
  CallArguments arguments;
};
struct Test {
  ExprPtr input;
  std::string name;
  CallArguments arguments;
};
enum class UnaryOp { kNegate, kPlus, kNot };
struct Unary {
  UnaryOp op;
  ExprPtr operand;
};
enum class BinaryOp { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
struct Binary {
  BinaryOp op;
  ExprPtr left, right;
};
struct Concat {
  std::vector<ExprPtr> parts;
};
enum class CompareOp { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };
struct Comparison {
  ExprPtr first;
  std::vector<std::pair<CompareOp, ExprPtr>> rest;
};
struct Logical {
  bool is_and;
  ExprPtr left, right;
};
struct Conditional {
  ExprPtr test, then, otherwise;  // `otherwise` may be null
};

struct Expr {
  uint32_t offset;
  uint32_t depth;  // 1 + that of the deepest child
  std::variant<Constant, Name, ListDisplay, DictDisplay, Attribute, Subscript, Slice, Call, Filter, Test,
               Unary, Binary, Concat, Comparison, Logical, Conditional>
      node;
};

struct Statement;
using Body = std::vector<Statement>;

// What {% set %}, {% for %} and {% with %} assign to: a name, an attribute of a namespace, or a tuple of
// targets.
struct Target {
  std::string name;
  std::string attribute;      // not empty: name.attribute
  std::vector<Target> items;  // not empty: a tuple
};

struct Parameter {
  std::string name;
  ExprPtr default_value;  // may be null
};

struct Data {
  Value text;
};
struct Print {
  ExprPtr expression;
};
struct If {
  std::vector<std::pair<ExprPtr, Body>> branches;
  Body otherwise;
};
struct For {
  Target target;
  ExprPtr iterable;
  ExprPtr filter;  // may be null
  bool is_recursive;
  Body body, otherwise;
};
struct Set {
  Target target;
  ExprPtr value;
};
struct SetBlock {
  Target target;
  ExprPtr filter;  // may be null
  Body body;
};
struct Macro {
  std::string name;
  std::vector<Parameter> parameters;
  Body body;
  bool takes_varargs = false;  // the macro names `varargs`, so it takes any number of arguments
  bool takes_kwargs = false;
};
struct CallBlock {
  Macro caller;
  ExprPtr call;  // a Call
};
struct FilterBlock {
  ExprPtr filter;
  Body body;
};
struct With {
  std::vector<std::pair<Target, ExprPtr>> assignments;
  Body body;
};
struct LoopControl {
  bool is_break;
};

struct Statement {
  uint32_t offset;
  std::variant<Data, Print, If, For, Set, SetBlock, Macro, CallBlock, FilterBlock, With, LoopControl> node;
};

}  // namespace tercet::text::jinja
