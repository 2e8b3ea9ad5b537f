// Value: what a template computes with. The types are Python's, as a template sees them.
//
// Strings, lists and dicts never change once they are part of a Value (Jinja's ImmutableSandboxedEnvironment
// forbids it too), so values are cheap to copy and safe to share between threads. Namespaces and loops do
// change; they belong to one render.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/marked_string.h"

namespace tercet::text::jinja {

class Value;
class Dict;
class Runtime;
struct Loop;

// Missing: prints as nothing, is false, and is an error to compute with. `reason` says what was missing.
struct Undefined {
  std::shared_ptr<const std::string> reason;
};
struct None {};

// An integer outside 64 bits, in decimal digits with an optional minus. It can be printed and compared, no
// more.
struct BigInt {
  std::shared_ptr<const std::string> digits;
};

struct List {
  std::vector<Value> items;
  bool is_tuple = false;
  size_t depth = 1;  // 1 + the depth of the deepest item
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

struct Callable {
  std::string name;
  std::function<Value(Runtime&, const Arguments&)> call;
};

struct Namespace;

class Value {
 public:
  Value() = default;  // undefined
  Value(None) : data_(None{}) {}
  Value(bool value) : data_(value) {}
  Value(int64_t value) : data_(value) {}
  Value(double value) : data_(value) {}
  Value(BigInt value) : data_(std::move(value)) {}
  Value(MarkedString value) : data_(std::make_shared<const MarkedString>(std::move(value))) {}
  Value(List value);
  Value(Dict value);
  Value(std::shared_ptr<Namespace> value) : data_(std::move(value)) {}
  Value(std::shared_ptr<Loop> value) : data_(std::move(value)) {}
  Value(Callable value) : data_(std::make_shared<const Callable>(std::move(value))) {}
  Value(const void*) = delete;  // a char* would become a bool

  static Value undefined(std::string reason);
  static Value user_string(std::string_view text);
  static Value template_string(std::string_view text);

  // Null where the value is of another type.
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&data_);
  }
  const MarkedString* string() const { return pointee<const MarkedString>(); }
  const List* list() const { return pointee<const List>(); }
  const Dict* dict() const { return pointee<const Dict>(); }
  Namespace* name_space() const { return pointee<Namespace>(); }
  Loop* loop() const { return pointee<Loop>(); }
  const Callable* callable() const { return pointee<const Callable>(); }
  std::shared_ptr<const MarkedString> shared_string() const;

  bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  bool is_none() const { return std::holds_alternative<None>(data_); }
  bool is_number() const;  // bool included, as in Python
  // The value as a 64-bit integer, if it is a bool or an integer of that size.
  std::optional<int64_t> integer() const;
  // The value as a double, if it is a number; integers round.
  std::optional<double> number() const;

  bool truthy() const;
  // Python's name of the type: "str", "NoneType", ...
  const char* type_name() const;
  // How deep lists and dicts nest in it: 0 for a scalar.
  size_t depth() const;
  // Python's `is`.
  bool same_object(const Value& other) const;

 private:
  template <class T>
  T* pointee() const {
    const auto* pointer = std::get_if<std::shared_ptr<T>>(&data_);
    return pointer ? pointer->get() : nullptr;
  }

  std::variant<Undefined, None, bool, int64_t, double, BigInt, std::shared_ptr<const MarkedString>,
               std::shared_ptr<const List>, std::shared_ptr<const Dict>, std::shared_ptr<Namespace>,
               std::shared_ptr<Loop>, std::shared_ptr<const Callable>>
      data_;
};

// A dict in insertion order. Keys are strings, numbers, none, or tuples of these.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;

  // A key that is already there keeps its place. False: the key is unhashable (a list or a dict).
  bool insert(const Value& key, Value value);
  void set(std::string_view key, Value value);  // a key from the user
  // Null where the key is missing or unhashable.
  const Value* lookup(const Value& key) const;
  const Value* find(std::string_view key) const;

  const std::vector<Entry>& entries() const { return entries_; }
  size_t size() const { return entries_.size(); }
  size_t depth() const { return depth_; }

 private:
  void set_hashed(std::string hash_key, const Value& key, Value value);
  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t> index_;  // hash key -> entry
  size_t depth_ = 1;
};

// The only value that a template may change: {% set ns.x = 1 %}.
struct Namespace {
  std::map<std::string, Value, std::less<>> variables;
};

// A text that is equal for keys that Python holds for equal (1, 1.0 and true); absent where the value is
// unhashable.
std::optional<std::string> hash_key(const Value& value);

}  // namespace tercet::text::jinja
