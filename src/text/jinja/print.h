// How values become text: Python's str() and repr().
#pragma once

#include <string>
#include <string_view>

#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace tercet::text::jinja {

// repr(float): the shortest digits that read back as the same double, "1.0", "1e-07", "1e+16", "nan".
std::string float_repr(double value);

// str(): a string is itself, marks included; scalars are template text; lists and dicts are user text.
MarkedString to_text(Runtime& runtime, const Value& value);
// Appends str(value).
void append_text(Runtime& runtime, MarkedString& out, const Value& value);

std::string repr(Runtime& runtime, const Value& value);
std::string repr(std::string_view text);

}  // namespace tercet::text::jinja
