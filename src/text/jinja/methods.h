// Attributes of values: the methods that Python's str, list and dict have, the variables of loops and
// namespaces, and the entries of dicts by name.
#pragma once

#include <optional>
#include <string_view>

#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace tercet::text::jinja {

// A method of this object bound to it, or an attribute; entries of dicts are not attributes. Absent: there is
// none. Methods that would change the object exist, and fail when called.
std::optional<Value> attribute_of(const Value& object, std::string_view name);

// object.name as Jinja resolves it: an attribute first, then an entry; undefined where there is neither.
Value attribute(const Value& object, std::string_view name);

using Method = Value (*)(Runtime&, const Value& self, const Arguments&);
// Null where str has no such method.
Method find_string_method(std::string_view name);

}  // namespace tercet::text::jinja
