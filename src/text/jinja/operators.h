// Python's operators on values: arithmetic, comparison, membership, subscripts, slices and iteration.
// All throw TemplateError where Python raises.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace tercet::text::jinja {

Value apply_binary(Runtime& runtime, BinaryOp op, const Value& left, const Value& right);
Value negate(const Value& value);

bool equal(Runtime& runtime, const Value& left, const Value& right);
// Negative, zero or positive. `op` names the operator in the error for types that have no order.
int order(Runtime& runtime, const Value& left, const Value& right, const char* op = "<");
bool compare(Runtime& runtime, CompareOp op, const Value& left, const Value& right);
bool contains(Runtime& runtime, const Value& container, const Value& item);

// object[index]: an item first, then an attribute; undefined where there is neither.
Value subscript(Runtime& runtime, const Value& object, const Value& index);
// object[start:stop:step]; a part that is none is absent.
Value slice(Runtime& runtime, const Value& object, const Value& start, const Value& stop, const Value& step);

// The items that a {% for %} sees: of a string its characters, of a dict its keys.
std::vector<Value> iterate(Runtime& runtime, const Value& value);
// len(); error where the type has none.
int64_t length(Runtime& runtime, const Value& value);

// Throws with the reason why the value is undefined.
[[noreturn]] void fail_undefined(const Value& value);
// "'dict object'" and the like, as Jinja names an object in its messages.
std::string describe_object(const Value& value);

}  // namespace tercet::text::jinja
