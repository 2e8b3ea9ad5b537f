#include "text/jinja/arguments.h"

#include <algorithm>

#include "text/jinja/error.h"

namespace tercet::text::jinja {

BoundArguments::BoundArguments(const Arguments& arguments, std::string_view function,
                               std::initializer_list<std::string_view> parameters, size_t num_required)
    : function_(function), parameters_(parameters), values_(parameters.size(), nullptr) {
  if (arguments.positional.size() > parameters_.size()) {
    fail(function_ + "() takes at most " + std::to_string(parameters_.size()) + " argument(s), got " +
         std::to_string(arguments.positional.size()));
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto parameter = std::find(parameters_.begin(), parameters_.end(), name);
    if (parameter == parameters_.end()) fail(function_ + "() has no parameter '" + name + "'");
    const Value*& slot = values_[static_cast<size_t>(parameter - parameters_.begin())];
    if (slot != nullptr) fail(function_ + "() got two values for '" + name + "'");
    slot = &value;
  }
  for (size_t i = 0; i < num_required; ++i) {
    if (values_[i] == nullptr)
      fail(function_ + "() needs the argument '" + std::string(parameters_[i]) + "'");
  }
}

const Value& BoundArguments::operator[](size_t parameter) const {
  static const Value kAbsent;
  return values_[parameter] != nullptr ? *values_[parameter] : kAbsent;
}

void BoundArguments::fail_type(size_t parameter, const char* expected) const {
  fail(function_ + "(): '" + std::string(parameters_[parameter]) + "' is of type " +
       values_[parameter]->type_name() + ", expected " + expected);
}

bool BoundArguments::boolean(size_t parameter, bool otherwise) const {
  return has(parameter) ? values_[parameter]->truthy() : otherwise;
}

int64_t BoundArguments::integer(size_t parameter, int64_t otherwise) const {
  if (!has(parameter)) return otherwise;
  const auto value = values_[parameter]->integer();
  if (!value) fail_type(parameter, "an integer");
  return *value;
}

const MarkedString* BoundArguments::string(size_t parameter) const {
  if (!has(parameter) || values_[parameter]->is_none()) return nullptr;
  const MarkedString* text = values_[parameter]->string();
  if (text == nullptr) fail_type(parameter, "a string");
  return text;
}

}  // namespace tercet::text::jinja
