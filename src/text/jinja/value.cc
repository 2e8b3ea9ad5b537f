#include "text/jinja/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "text/jinja/loop.h"
#include "text/jinja/print.h"

namespace tercet::text::jinja {

Value::Value(List value) {
  size_t depth = 0;
  for (const Value& item : value.items) depth = std::max(depth, item.depth());
  value.depth = depth + 1;
  data_ = std::make_shared<const List>(std::move(value));
}

Value::Value(Dict value) : data_(std::make_shared<const Dict>(std::move(value))) {}

Value Value::undefined(std::string reason) {
  Value value;
  value.data_ = Undefined{std::make_shared<const std::string>(std::move(reason))};
  return value;
}

Value Value::user_string(std::string_view text) { return MarkedString(std::string(text), Origin::kUser); }
Value Value::template_string(std::string_view text) {
  return MarkedString(std::string(text), Origin::kTemplate);
}

std::shared_ptr<const MarkedString> Value::shared_string() const {
  const auto* pointer = std::get_if<std::shared_ptr<const MarkedString>>(&data_);
  return pointer ? *pointer : nullptr;
}

bool Value::is_number() const { return number().has_value(); }

std::optional<int64_t> Value::integer() const {
  if (const auto* value = get_if<int64_t>()) return *value;
  if (const auto* value = get_if<bool>()) return *value ? 1 : 0;
  return std::nullopt;
}

std::optional<double> Value::number() const {
  if (const auto* value = get_if<double>()) return *value;
  if (const auto value = integer()) return static_cast<double>(*value);
  if (const auto* value = get_if<BigInt>()) return std::strtod(value->digits->c_str(), nullptr);
  return std::nullopt;
}

bool Value::truthy() const {
  if (is_undefined() || is_none()) return false;
  if (const auto value = number()) return *value != 0;
  if (const auto* value = string()) return !value->empty();
  if (const auto* value = list()) return !value->items.empty();
  if (const auto* value = dict()) return value->size() != 0;
  return true;
}

const char* Value::type_name() const {
  if (is_undefined()) return "Undefined";
  if (is_none()) return "NoneType";
  if (get_if<bool>()) return "bool";
  if (get_if<int64_t>() || get_if<BigInt>()) return "int";
  if (get_if<double>()) return "float";
  if (string()) return "str";
  if (const auto* value = list()) return value->is_tuple ? "tuple" : "list";
  if (dict()) return "dict";
  if (name_space()) return "Namespace";
  if (loop()) return "LoopContext";
  return "function";
}

size_t Value::depth() const {
  if (const auto* value = list()) return value->depth;
  if (const auto* value = dict()) return value->depth();
  return 0;
}

bool Value::same_object(const Value& other) const {
  if (data_.index() != other.data_.index()) return false;
  return std::visit(
      [&other](const auto& mine) {
        using T = std::decay_t<decltype(mine)>;
        const T& theirs = *other.get_if<T>();
        if constexpr (std::is_same_v<T, Undefined> || std::is_same_v<T, None>) {
          return true;
        } else if constexpr (std::is_same_v<T, BigInt>) {
          return *mine.digits == *theirs.digits;
        } else {
          return mine == theirs;
        }
      },
      data_);
}

std::optional<std::string> hash_key(const Value& value) {
  if (const auto* text = value.string()) return "s" + text->bytes();
  if (value.is_none()) return "n";
  if (value.is_undefined()) return "u";
  if (const auto integer = value.integer()) return "i" + std::to_string(*integer);
  if (const auto* big = value.get_if<BigInt>()) return "i" + *big->digits;
  if (const auto* number = value.get_if<double>()) {
    if (std::floor(*number) == *number && std::abs(*number) < 9e18) {
      return "i" + std::to_string(static_cast<int64_t>(*number));
    }
    return "f" + float_repr(*number);
  }
  const List* tuple = value.list();
  if (tuple == nullptr || !tuple->is_tuple) return std::nullopt;
  std::string key = "t";
  for (const Value& item : tuple->items) {
    // Tuples are keys of short, flat data; a template that nests or repeats them cannot grow a key without
    // bound.
    if (item.list() != nullptr) return std::nullopt;
    const auto part = hash_key(item);
    if (!part) return std::nullopt;
    key += std::to_string(part->size()) + ":" + *part;
  }
  return key;
}

void Dict::set_hashed(std::string hash_key, const Value& key, Value value) {
  depth_ = std::max(depth_, value.depth() + 1);
  const auto [position, is_new] = index_.emplace(std::move(hash_key), entries_.size());
  if (is_new) {
    entries_.emplace_back(key, std::move(value));
  } else {
    entries_[position->second].second = std::move(value);
  }
}

bool Dict::insert(const Value& key, Value value) {
  auto hashed = hash_key(key);
  if (!hashed) return false;
  set_hashed(*std::move(hashed), key, std::move(value));
  return true;
}

void Dict::set(std::string_view key, Value value) {
  set_hashed("s" + std::string(key), Value::user_string(key), std::move(value));
}

const Value* Dict::lookup(const Value& key) const {
  const auto hashed = hash_key(key);
  if (!hashed) return nullptr;
  const auto position = index_.find(*hashed);
  return position == index_.end() ? nullptr : &entries_[position->second].second;
}

const Value* Dict::find(std::string_view key) const {
  const auto position = index_.find("s" + std::string(key));
  return position == index_.end() ? nullptr : &entries_[position->second].second;
}

}  // namespace tercet::text::jinja
