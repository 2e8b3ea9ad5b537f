// JSON in and out of values.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace tercet::text::jinja {

inline constexpr size_t kMaxJsonDepth = 100;

// Objects keep their order; of a repeated key the last value counts. Strings are user text. Integers outside
// 64 bits keep their digits. Errors: not JSON, or nested deeper than kMaxJsonDepth.
Result<Value> value_from_json(std::string_view json);

struct JsonStyle {
  bool ensure_ascii = false;
  std::string indent;  // of one level; used when `multiline`
  bool multiline = false;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};

// Python's json.dumps without HTML escaping. Throws TemplateError for what JSON cannot say.
std::string to_json(Runtime& runtime, const Value& value, const JsonStyle& style);

}  // namespace tercet::text::jinja
