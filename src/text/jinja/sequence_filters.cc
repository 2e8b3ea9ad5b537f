// Filters on lists, dicts and other things to iterate over. Where Jinja gives a generator they give a list.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "text/jinja/arguments.h"
#include "text/jinja/builtins.h"
#include "text/jinja/error.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/strings.h"
#include "text/jinja/utf8.h"

namespace tercet::text::jinja {
namespace {

// The value that sorting and grouping look at: an attribute (or several, by commas), in lower case if case is
// ignored.
Value sort_key(Runtime& runtime, const Value& item, const Value& attribute, bool case_sensitive) {
  Value key = item;
  if (const auto* path = attribute.string();
      path != nullptr && path->bytes().find(',') != std::string::npos) {
    std::vector<Value> parts;
    for (size_t begin = 0; begin <= path->size();) {
      const size_t comma = std::min(path->bytes().find(',', begin), path->size());
      const Value part = runtime.string(path->slice(begin, comma));
      parts.push_back(sort_key(runtime, item, part, case_sensitive));
      begin = comma + 1;
    }
    return runtime.list(std::move(parts));
  }
  if (!attribute.is_undefined() && !attribute.is_none()) key = attribute_by_path(runtime, item, attribute);
  if (!case_sensitive && key.string() != nullptr) return runtime.string(lower(*key.string()));
  return key;
}

std::vector<Value> sorted(Runtime& runtime, const std::vector<Value>& items, std::vector<Value> keys,
                          bool reverse) {
  std::vector<size_t> positions(items.size());
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = i;
  std::stable_sort(positions.begin(), positions.end(), [&](size_t a, size_t b) {
    return reverse ? order(runtime, keys[b], keys[a]) < 0 : order(runtime, keys[a], keys[b]) < 0;
  });
  std::vector<Value> result;
  for (const size_t position : positions) result.push_back(items[position]);
  return result;
}

Value sort(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "sort", {"reverse", "case_sensitive", "attribute"}, 0);
  const auto items = iterate(runtime, self);
  std::vector<Value> keys;
  for (const Value& item : items) keys.push_back(sort_key(runtime, item, args[2], args.boolean(1, false)));
  return runtime.list(sorted(runtime, items, std::move(keys), args.boolean(0, false)));
}

Value dictsort(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "dictsort", {"case_sensitive", "by", "reverse"}, 0);
  if (self.dict() == nullptr) fail(std::string("dictsort: expected a dict, got ") + self.type_name());
  const std::string by = args.string(1) != nullptr ? args.string(1)->bytes() : "key";
  if (by != "key" && by != "value") fail("dictsort: you can only sort by either 'key' or 'value'");
  std::vector<Value> items, keys;
  for (const auto& [key, value] : self.dict()->entries()) {
    items.push_back(runtime.list({key, value}, true));
    keys.push_back(sort_key(runtime, by == "key" ? key : value, Value(), args.boolean(0, false)));
  }
  return runtime.list(sorted(runtime, items, std::move(keys), args.boolean(2, false)));
}

template <bool wants_max>
Value extreme(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, wants_max ? "max" : "min", {"case_sensitive", "attribute"}, 0);
  Value best, best_key;
  bool is_first = true;
  for (const Value& item : iterate(runtime, self)) {
    const Value key = sort_key(runtime, item, args[1], args.boolean(0, false));
    const int sign = is_first ? 0 : order(runtime, key, best_key);
    if (std::exchange(is_first, false) || (wants_max ? sign > 0 : sign < 0)) {
      best = item;
      best_key = key;
    }
  }
  return is_first ? Value::undefined("No aggregated item, sequence was empty.") : best;
}

Value unique(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "unique", {"case_sensitive", "attribute"}, 0);
  Dict seen;
  std::vector<Value> result;
  for (const Value& item : iterate(runtime, self)) {
    const Value key = sort_key(runtime, item, args[1], args.boolean(0, false));
    if (seen.lookup(key) != nullptr) continue;
    if (!seen.insert(key, None{})) fail(std::string("unhashable type: '") + key.type_name() + "'");
    result.push_back(item);
  }
  return runtime.list(std::move(result));
}

Value groupby(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "groupby", {"attribute", "default", "case_sensitive"}, 1);
  std::vector<Value> items = iterate(runtime, self), keys;
  for (const Value& item : items) {
    Value key = attribute_by_path(runtime, item, args[0]);
    if (key.is_undefined() && args.has(1)) key = args[1];
    keys.push_back(sort_key(runtime, key, Value(), args.boolean(2, false)));
  }
  std::vector<Value> positions;
  for (size_t i = 0; i < items.size(); ++i) positions.push_back(static_cast<int64_t>(i));
  std::vector<Value> groups, group;
  const auto order_of_items = sorted(runtime, positions, keys, false);
  for (size_t i = 0; i < order_of_items.size(); ++i) {
    const auto at = static_cast<size_t>(*order_of_items[i].integer());
    group.push_back(items[at]);
    const bool is_last =
        i + 1 == order_of_items.size() ||
        !equal(runtime, keys[at], keys[static_cast<size_t>(*order_of_items[i + 1].integer())]);
    if (!is_last) continue;
    Value grouper = attribute_by_path(runtime, group.front(), args[0]);
    if (grouper.is_undefined() && args.has(1)) grouper = args[1];
    groups.push_back(runtime.list({grouper, runtime.list(std::exchange(group, {}))}, true));
  }
  return runtime.list(std::move(groups));
}

Value join_filter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "join", {"d", "attribute"}, 0);
  MarkedString result;
  bool is_first = true;
  for (const Value& item : iterate(runtime, self)) {
    if (!std::exchange(is_first, false)) append_text(runtime, result, args[0]);
    append_text(runtime, result, args.has(1) ? attribute_by_path(runtime, item, args[1]) : item);
  }
  return runtime.string(std::move(result));
}

Value first(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "first", {}, 0);
  const auto items = iterate(runtime, self);
  return items.empty() ? Value::undefined("No first item, sequence was empty.") : items.front();
}

Value last(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "last", {}, 0);
  const auto items = iterate(runtime, self);
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
}

Value list(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "list", {}, 0);
  return runtime.list(iterate(runtime, self));
}

Value reverse(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "reverse", {}, 0);
  auto items = iterate(runtime, self);
  std::reverse(items.begin(), items.end());
  if (self.string() == nullptr) return runtime.list(std::move(items));
  MarkedString text;
  for (const Value& item : items) append_text(runtime, text, item);
  return runtime.string(std::move(text));
}

Value items(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "items", {}, 0);
  if (!self.is_undefined() && self.dict() == nullptr) fail("Can only get item pairs from a mapping.");
  std::vector<Value> pairs;
  if (self.dict() != nullptr) {
    for (const auto& [key, value] : self.dict()->entries()) pairs.push_back(runtime.list({key, value}, true));
  }
  return runtime.list(std::move(pairs));
}

Value sum(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "sum", {"attribute", "start"}, 0);
  Value total = args.has(1) ? args[1] : Value(int64_t{0});
  for (const Value& item : iterate(runtime, self)) {
    const bool by_attribute = args.has(0) && !args[0].is_none();
    total = apply_binary(runtime, BinaryOp::kAdd, total,
                         by_attribute ? attribute_by_path(runtime, item, args[0]) : item);
  }
  return total;
}

Value batch(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "batch", {"linecount", "fill_with"}, 1);
  const int64_t size = args.integer(0, 1);
  if (size < 1) fail("batch: the size must be positive");
  std::vector<Value> rows, row;
  for (const Value& item : iterate(runtime, self)) {
    if (static_cast<int64_t>(row.size()) == size) rows.push_back(runtime.list(std::exchange(row, {})));
    row.push_back(item);
  }
  while (args.has(1) && !args[1].is_none() && !row.empty() && static_cast<int64_t>(row.size()) < size) {
    runtime.charge(1);
    row.push_back(args[1]);
  }
  if (!row.empty()) rows.push_back(runtime.list(std::move(row)));
  return runtime.list(std::move(rows));
}

Value slice_filter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "slice", {"slices", "fill_with"}, 1);
  const int64_t slices = args.integer(0, 1);
  if (slices < 1 || slices > static_cast<int64_t>(kMaxRange))
    fail("slice: the number of slices is out of range");
  const auto items = iterate(runtime, self);
  const size_t per_slice = items.size() / static_cast<size_t>(slices);
  const size_t num_longer = items.size() % static_cast<size_t>(slices);
  std::vector<Value> columns;
  size_t begin = 0;
  for (size_t i = 0; i < static_cast<size_t>(slices); ++i) {
    const size_t end = begin + per_slice + (i < num_longer ? 1 : 0);
    std::vector<Value> column(items.begin() + static_cast<std::ptrdiff_t>(begin),
                              items.begin() + static_cast<std::ptrdiff_t>(end));
    if (args.has(1) && !args[1].is_none() && i >= num_longer) column.push_back(args[1]);
    columns.push_back(runtime.list(std::move(column)));
    begin = end;
  }
  return runtime.list(std::move(columns));
}

Value attr(Runtime&, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "attr", {"name"}, 1);
  if (self.is_undefined()) fail_undefined(self);
  const MarkedString* name = args.string(0);
  auto found = name != nullptr ? attribute_of(self, name->bytes()) : std::nullopt;
  if (found) return *std::move(found);
  return Value::undefined(describe_object(self) + " has no attribute '" + (name ? name->bytes() : "None") +
                          "'");
}

// Arguments without the first `count` positional ones.
Arguments rest(const Arguments& arguments, size_t count) {
  Arguments result = arguments;
  result.positional.erase(result.positional.begin(),
                          result.positional.begin() + static_cast<std::ptrdiff_t>(count));
  return result;
}

const std::string& name_argument(const Arguments& arguments, size_t position, const char* filter) {
  if (position >= arguments.positional.size() || arguments.positional[position].string() == nullptr) {
    fail(std::string(filter) + ": expected a name as a string");
  }
  return arguments.positional[position].string()->bytes();
}

// What map and select work on: nothing for whatever is false, as in Jinja.
std::vector<Value> items_if_any(Runtime& runtime, const Value& value) {
  return value.truthy() ? iterate(runtime, value) : std::vector<Value>();
}

Value map(Runtime& runtime, const Value& self, const Arguments& arguments) {
  std::vector<Value> result;
  if (arguments.positional.empty()) {
    const BoundArguments args(arguments, "map", {"attribute", "default"}, 1);
    for (const Value& item : items_if_any(runtime, self)) {
      Value value = attribute_by_path(runtime, item, args[0]);
      result.push_back(value.is_undefined() && args.has(1) ? args[1] : std::move(value));
    }
    return runtime.list(std::move(result));
  }
  const std::string& name = name_argument(arguments, 0, "map");
  const Method filter = find_filter(name);
  if (filter == nullptr) fail("No filter named '" + name + "'.");
  const Arguments filter_arguments = rest(arguments, 1);
  const Runtime::Nested nested(runtime);
  for (const Value& item : items_if_any(runtime, self))
    result.push_back(filter(runtime, item, filter_arguments));
  return runtime.list(std::move(result));
}

// select, reject, selectattr and rejectattr: items for which a test, or the truth of the value, is as wanted.
template <bool wanted, bool by_attribute>
Value select(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const char* name = by_attribute ? "selectattr" : "select";
  const size_t skip = by_attribute ? 1 : 0;
  if (arguments.positional.size() < skip) fail(std::string(name) + ": expected an attribute");
  Method test = nullptr;
  Arguments test_arguments;
  if (arguments.positional.size() > skip) {
    const std::string& test_name = name_argument(arguments, skip, name);
    test = find_test(test_name);
    if (test == nullptr) fail("No test named '" + test_name + "'.");
    test_arguments = rest(arguments, skip + 1);
  }
  const Runtime::Nested nested(runtime);
  std::vector<Value> result;
  for (const Value& item : items_if_any(runtime, self)) {
    const Value value = by_attribute ? attribute_by_path(runtime, item, arguments.positional[0]) : item;
    const bool holds = test != nullptr ? test(runtime, value, test_arguments).truthy() : value.truthy();
    if (holds == wanted) result.push_back(item);
  }
  return runtime.list(std::move(result));
}

constexpr std::pair<std::string_view, Method> kSequenceFilters[] = {
    {"attr", attr},
    {"batch", batch},
    {"dictsort", dictsort},
    {"first", first},
    {"groupby", groupby},
    {"items", items},
    {"join", join_filter},
    {"last", last},
    {"list", list},
    {"map", map},
    {"max", extreme<true>},
    {"min", extreme<false>},
    {"reject", select<false, false>},
    {"rejectattr", select<false, true>},
    {"reverse", reverse},
    {"select", select<true, false>},
    {"selectattr", select<true, true>},
    {"slice", slice_filter},
    {"sort", sort},
    {"sum", sum},
    {"unique", unique},
};

}  // namespace

Value attribute_by_path(Runtime& runtime, const Value& object, const Value& path) {
  if (path.string() == nullptr) return subscript(runtime, object, path);
  const std::string& names = path.string()->bytes();
  Value value = object;
  for (size_t begin = 0; begin <= names.size();) {
    const size_t dot = std::min(names.find('.', begin), names.size());
    const std::string name = names.substr(begin, dot - begin);
    const bool is_number = !name.empty() && name.size() < 10 &&
                           std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
    runtime.charge(1);
    value = is_number ? subscript(runtime, value, Value(int64_t{std::stol(name)}))
                      : subscript(runtime, value, Value::user_string(name));
    begin = dot + 1;
  }
  return value;
}

Method find_sequence_filter(std::string_view name) {
  for (const auto& [filter_name, filter] : kSequenceFilters) {
    if (filter_name == name) return filter;
  }
  return nullptr;
}

}  // namespace tercet::text::jinja
