// What every template can name: filters (value|name), tests (value is name) and global functions.
#pragma once

#include <optional>
#include <string_view>

#include "text/jinja/methods.h"
#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace tercet::text::jinja {

// `self` is the filtered value. Null where there is no such filter.
Method find_filter(std::string_view name);
// The result is a bool.
Method find_test(std::string_view name);
// range, dict, namespace, cycler, joiner, raise_exception, strftime_now.
std::optional<Value> find_global(std::string_view name);

// The tables behind find_filter, by what they work on.
Method find_string_filter(std::string_view name);
Method find_number_filter(std::string_view name);
Method find_sequence_filter(std::string_view name);

// object.a.b for the dotted name (or the number) in `path`, as filters with an attribute take it.
Value attribute_by_path(Runtime& runtime, const Value& object, const Value& path);

}  // namespace tercet::text::jinja
