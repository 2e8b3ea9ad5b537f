// Binding of call arguments to the parameters of a built-in function.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace tercet::text::jinja {

// The arguments of one call, by parameter.
class BoundArguments {
 public:
  // The parameters in order, the first `num_required` without defaults. Throws where the call does not fit.
  BoundArguments(const Arguments& arguments, std::string_view function,
                 std::initializer_list<std::string_view> parameters, size_t num_required);

  bool has(size_t parameter) const { return values_[parameter] != nullptr; }
  // Undefined where absent.
  const Value& operator[](size_t parameter) const;

  // The argument converted; `otherwise` where it is absent. Throws where it has another type.
  bool boolean(size_t parameter, bool otherwise) const;
  int64_t integer(size_t parameter, int64_t otherwise) const;
  // Null where it is absent or none.
  const MarkedString* string(size_t parameter) const;

 private:
  [[noreturn]] void fail_type(size_t parameter, const char* expected) const;
  std::string function_;
  std::vector<std::string_view> parameters_;
  std::vector<const Value*> values_;
};

}  // namespace tercet::text::jinja
