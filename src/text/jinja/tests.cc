// Tests: value is name(arguments).
#include <algorithm>
#include <utility>

#include "text/jinja/arguments.h"
#include "text/jinja/builtins.h"
#include "text/jinja/error.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/utf8.h"

namespace tercet::text::jinja {
namespace {

using Predicate = bool (*)(const Value&);

// A test without arguments that looks at the value's type.
template <Predicate predicate>
Value type_test(Runtime&, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "test", {}, 0);
  return predicate(self);
}

bool is_defined(const Value& value) { return !value.is_undefined(); }
bool is_undefined(const Value& value) { return value.is_undefined(); }
bool is_none(const Value& value) { return value.is_none(); }
bool is_boolean(const Value& value) { return value.get_if<bool>() != nullptr; }
bool is_true(const Value& value) { return is_boolean(value) && *value.get_if<bool>(); }
bool is_false(const Value& value) { return is_boolean(value) && !*value.get_if<bool>(); }
bool is_integer(const Value& value) {
  return value.get_if<int64_t>() != nullptr || value.get_if<BigInt>() != nullptr;
}
bool is_float(const Value& value) { return value.get_if<double>() != nullptr; }
bool is_number(const Value& value) { return value.is_number(); }
bool is_string(const Value& value) { return value.string() != nullptr; }
bool is_mapping(const Value& value) { return value.dict() != nullptr; }
bool is_sequence(const Value& value) {
  return value.string() != nullptr || value.list() != nullptr || value.dict() != nullptr ||
         value.is_undefined();
}
bool is_callable(const Value& value) {
  return value.callable() != nullptr || value.loop() != nullptr || value.is_undefined();
}
bool never(const Value&) { return false; }

// odd, even and divisibleby: whether the remainder is `wanted`.
Value remainder_test(Runtime& runtime, const Value& value, const Value& divisor, int64_t wanted) {
  return equal(runtime, apply_binary(runtime, BinaryOp::kModulo, value, divisor), Value(wanted));
}

template <int64_t wanted>
Value parity(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "odd", {}, 0);
  if (self.string() != nullptr) fail("a string is neither odd nor even");
  return remainder_test(runtime, self, Value(int64_t{2}), wanted);
}

Value divisible_by(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "divisibleby", {"num"}, 1);
  if (self.string() != nullptr) fail("a string cannot be divided");
  return remainder_test(runtime, self, args[0], 0);
}

template <CompareOp op>
Value comparison(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "comparison", {"other"}, 1);
  return compare(runtime, op, self, args[0]);
}

Value same_as(Runtime&, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "sameas", {"other"}, 1);
  return self.same_object(args[0]);
}

template <bool wants_upper>
Value has_case(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value text = runtime.string(to_text(runtime, self));
  return find_string_method(wants_upper ? "isupper" : "islower")(runtime, text, arguments);
}

template <Method (*find)(std::string_view)>
Value names_builtin(Runtime&, const Value& self, const Arguments&) {
  return self.string() != nullptr && find(self.string()->bytes()) != nullptr;
}

constexpr std::pair<std::string_view, Method> kTests[] = {
    {"!=", comparison<CompareOp::kNotEqual>},
    {"<", comparison<CompareOp::kLess>},
    {"<=", comparison<CompareOp::kLessEqual>},
    {"==", comparison<CompareOp::kEqual>},
    {">", comparison<CompareOp::kGreater>},
    {">=", comparison<CompareOp::kGreaterEqual>},
    {"boolean", type_test<is_boolean>},
    {"callable", type_test<is_callable>},
    {"defined", type_test<is_defined>},
    {"divisibleby", divisible_by},
    {"eq", comparison<CompareOp::kEqual>},
    {"equalto", comparison<CompareOp::kEqual>},
    {"escaped", type_test<never>},
    {"even", parity<0>},
    {"false", type_test<is_false>},
    {"filter", names_builtin<find_filter>},
    {"float", type_test<is_float>},
    {"ge", comparison<CompareOp::kGreaterEqual>},
    {"greaterthan", comparison<CompareOp::kGreater>},
    {"gt", comparison<CompareOp::kGreater>},
    {"in", comparison<CompareOp::kIn>},
    {"integer", type_test<is_integer>},
    {"iterable", type_test<is_sequence>},
    {"le", comparison<CompareOp::kLessEqual>},
    {"lessthan", comparison<CompareOp::kLess>},
    {"lower", has_case<false>},
    {"lt", comparison<CompareOp::kLess>},
    {"mapping", type_test<is_mapping>},
    {"ne", comparison<CompareOp::kNotEqual>},
    {"none", type_test<is_none>},
    {"number", type_test<is_number>},
    {"odd", parity<1>},
    {"sameas", same_as},
    {"sequence", type_test<is_sequence>},
    {"string", type_test<is_string>},
    {"test", names_builtin<find_test>},
    {"true", type_test<is_true>},
    {"undefined", type_test<is_undefined>},
    {"upper", has_case<true>},
};

}  // namespace

Method find_test(std::string_view name) {
  for (const auto& [test_name, test] : kTests) {
    if (test_name == name) return test;
  }
  return nullptr;
}

}  // namespace tercet::text::jinja
