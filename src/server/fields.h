// Fields: reads the fields of a JSON object of a request, with errors that name the field, what was found and
// what was expected. A field that is absent or null leaves its variable alone.
//
// A view of the object.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/types.h"
#include "text/jinja/value.h"

namespace tercet::server {

using text::jinja::Value;

// Parses a body that must be a JSON object. Bounded before anything is built: nesting (100 levels) and the
// number of arrays and objects. Of a repeated key the last value counts. Errors have no field.
Result<Value> parse_object(std::string_view body);

// "a string", "an integer", ...
const char* json_type(const Value& value);
// An error of kind kInvalidArgument about `field` ("": the whole body).
Error invalid(std::string field, std::string message);
Error wrong_type(std::string field, const char* expected, const Value& found);

class Fields {
 public:
  // `value` must be an object; `prefix` comes before the names of its fields in errors ("stream_options.").
  explicit Fields(const Value& value, std::string prefix = "")
      : dict_(*value.dict()), prefix_(std::move(prefix)) {}

  // Null where the field is absent or null.
  const Value* find(std::string_view name) const;

  Status read(const char* name, bool& out) const;
  Status read(const char* name, int& out) const;
  Status read(const char* name, float& out) const;
  Status read(const char* name, std::string& out) const;
  // A string, or an array of strings.
  Status read(const char* name, std::vector<std::string>& out) const;
  // An array of token ids.
  Status read(const char* name, std::vector<core::TokenId>& out) const;

  std::string name_of(std::string_view name) const { return prefix_ + std::string(name); }

 private:
  const text::jinja::Dict& dict_;
  std::string prefix_;
};

// An array of integers of 32 bits; `field` names it in errors.
Result<std::vector<core::TokenId>> token_ids(const Value& value, const std::string& field);

}  // namespace tercet::server
