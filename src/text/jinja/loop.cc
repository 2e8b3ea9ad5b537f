#include "text/jinja/loop.h"

namespace tercet::text::jinja {

std::optional<Value> Loop::attribute(std::string_view name) const {
  const auto number = [](size_t value) { return Value(static_cast<int64_t>(value)); };
  const size_t length = items.size();
  if (name == "index") return number(index0 + 1);
  if (name == "index0") return number(index0);
  if (name == "first") return Value(index0 == 0);
  if (name == "last") return Value(index0 + 1 == length);
  if (name == "length") return number(length);
  if (name == "revindex") return number(length - index0);
  if (name == "revindex0") return number(length - index0 - 1);
  if (name == "depth") return number(depth0 + 1);
  if (name == "depth0") return number(depth0);
  if (name == "previtem")
    return index0 > 0 ? items[index0 - 1] : Value::undefined("there is no previous item");
  if (name == "nextitem")
    return index0 + 1 < length ? items[index0 + 1] : Value::undefined("there is no next item");
  return std::nullopt;
}

}  // namespace tercet::text::jinja
