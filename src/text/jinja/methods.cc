#include "text/jinja/methods.h"

#include <algorithm>
#include <utility>

#include "text/jinja/arguments.h"
#include "text/jinja/error.h"
#include "text/jinja/loop.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"

namespace tercet::text::jinja {
namespace {

Value pair(Runtime& runtime, const Dict::Entry& entry) {
  return runtime.list({entry.first, entry.second}, true);
}

Value dict_get(Runtime&, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "get", {"key", "default"}, 1);
  const Value* found = self.dict()->lookup(args[0]);
  if (found != nullptr) return *found;
  return args.has(1) ? args[1] : Value(None{});
}

Value dict_items(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "items", {}, 0);
  std::vector<Value> items;
  for (const auto& entry : self.dict()->entries()) items.push_back(pair(runtime, entry));
  return runtime.list(std::move(items));
}

Value dict_keys(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "keys", {}, 0);
  return runtime.list(iterate(runtime, self));
}

Value dict_values(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "values", {}, 0);
  std::vector<Value> items;
  for (const auto& [key, value] : self.dict()->entries()) items.push_back(value);
  return runtime.list(std::move(items));
}

// Nothing can change a copy, so it may be the object itself.
Value copy(Runtime&, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "copy", {}, 0);
  return self;
}

Value list_index(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "index", {"value"}, 1);
  const auto& items = self.list()->items;
  for (size_t i = 0; i < items.size(); ++i) {
    if (equal(runtime, items[i], args[0])) return static_cast<int64_t>(i);
  }
  fail("the value is not in the list");
}

Value list_count(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "count", {"value"}, 1);
  const auto& items = self.list()->items;
  return static_cast<int64_t>(std::count_if(
      items.begin(), items.end(), [&](const Value& item) { return equal(runtime, item, args[0]); }));
}

Value loop_cycle(Runtime&, const Value& self, const Arguments& arguments) {
  if (arguments.positional.empty()) fail("no items for cycling given");
  return arguments.positional[self.loop()->index0 % arguments.positional.size()];
}

// Compares what was printed: keeping the values themselves could make the loop hold itself.
Value loop_changed(Runtime& runtime, const Value& self, const Arguments& arguments) {
  std::string now;
  for (const Value& value : arguments.positional) now += repr(runtime, value) + ",";
  const bool is_same = self.loop()->last_changed == now;
  self.loop()->last_changed = std::move(now);
  return !is_same;
}

Value refuse_change(Runtime&, const Value& self, const Arguments&) {
  fail(std::string("this method would change the ") + self.type_name() +
       "; templates may change namespaces only");
}

using Table = std::pair<std::string_view, Method>;
constexpr Table kDictMethods[] = {
    {"clear", refuse_change},   {"copy", copy},
    {"get", dict_get},          {"items", dict_items},
    {"keys", dict_keys},        {"pop", refuse_change},
    {"popitem", refuse_change}, {"setdefault", refuse_change},
    {"update", refuse_change},  {"values", dict_values},
};
constexpr Table kTupleMethods[] = {{"count", list_count}, {"index", list_index}};
constexpr Table kListMethods[] = {
    {"append", refuse_change},  {"clear", refuse_change},  {"copy", copy},
    {"count", list_count},      {"extend", refuse_change}, {"index", list_index},
    {"insert", refuse_change},  {"pop", refuse_change},    {"remove", refuse_change},
    {"reverse", refuse_change}, {"sort", refuse_change},
};
constexpr Table kLoopMethods[] = {{"changed", loop_changed}, {"cycle", loop_cycle}};

template <size_t size>
Method find_method(const Table (&table)[size], std::string_view name) {
  const auto found =
      std::find_if(std::begin(table), std::end(table), [&](const Table& row) { return row.first == name; });
  return found == std::end(table) ? nullptr : found->second;
}

Method find_method(const Value& object, std::string_view name) {
  if (object.string() != nullptr) return find_string_method(name);
  if (object.dict() != nullptr) return find_method(kDictMethods, name);
  if (const auto* list = object.list()) {
    return list->is_tuple ? find_method(kTupleMethods, name) : find_method(kListMethods, name);
  }
  if (object.loop() != nullptr) return find_method(kLoopMethods, name);
  return nullptr;
}

}  // namespace

std::optional<Value> attribute_of(const Value& object, std::string_view name) {
  if (const auto* name_space = object.name_space()) {
    const auto found = name_space->variables.find(name);
    if (found != name_space->variables.end()) return found->second;
    return std::nullopt;
  }
  if (const auto* loop = object.loop()) {
    if (auto variable = loop->attribute(name)) return variable;
  }
  const Method method = find_method(object, name);
  if (method == nullptr) return std::nullopt;
  return Callable{std::string(name), [object, method](Runtime& runtime, const Arguments& arguments) {
                    return method(runtime, object, arguments);
                  }};
}

Value attribute(const Value& object, std::string_view name) {
  if (object.is_undefined()) fail_undefined(object);
  if (auto found = attribute_of(object, name)) return *std::move(found);
  if (const auto* dict = object.dict()) {
    if (const Value* found = dict->find(name)) return *found;
  }
  return Value::undefined(describe_object(object) + " has no attribute '" + std::string(name) + "'");
}

}  // namespace tercet::text::jinja
