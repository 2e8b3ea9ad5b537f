// Loop: the `loop` variable of a {% for %}.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace tercet::text::jinja {

struct Loop {
  std::vector<Value> items;
  size_t index0 = 0;
  size_t depth0 = 0;                                 // of recursive calls
  std::optional<std::string> last_changed;           // repr of what loop.changed() saw last
  std::function<Value(const Value& items)> recurse;  // empty unless the loop is recursive

  // index, index0, first, last, length, revindex, revindex0, previtem, nextitem, depth, depth0; absent
  // otherwise.
  std::optional<Value> attribute(std::string_view name) const;
};

}  // namespace tercet::text::jinja
