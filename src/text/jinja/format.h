// Python's two ways to format: "%s of %d" % values, and "{} of {:>3}".format(values).
#pragma once

#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace tercet::text::jinja {

// `values` is a tuple, a dict for "%(name)s", or the only value.
Value format_percent(Runtime& runtime, const MarkedString& pattern, const Value& values);

// Replacement fields are {}, {0}, {name}, each with .attribute and [key] after it, a conversion (!s, !r) and
// a format specification [[fill]align][sign][0][width][,][.precision][type].
Value format_braces(Runtime& runtime, const MarkedString& pattern, const Arguments& arguments);

}  // namespace tercet::text::jinja
