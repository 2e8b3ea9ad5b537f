#include "server/fields.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "text/jinja/json.h"

namespace tercet::server {
namespace {

using text::jinja::BigInt;
using text::jinja::List;

constexpr size_t kMaxContainers = 200'000;

// Arrays and objects cost far more memory than the bytes that write them.
size_t count_containers(std::string_view json) {
  size_t count = 0;
  bool in_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    if (in_string && json[i] == '\\') {
      ++i;
    } else if (json[i] == '"') {
      in_string = !in_string;
    } else if (!in_string && (json[i] == '[' || json[i] == '{')) {
      ++count;
    }
  }
  return count;
}

// JSON has one type of numbers: 2.0 is an integer too. A bool is none.
std::optional<int64_t> integer_of(const Value& value) {
  if (value.get_if<bool>() != nullptr) return std::nullopt;
  if (const auto whole = value.integer()) return whole;
  const double* number = value.get_if<double>();
  if (number == nullptr || *number != std::floor(*number) || std::abs(*number) > 1e15) return std::nullopt;
  return static_cast<int64_t>(*number);
}

}  // namespace

Result<Value> parse_object(std::string_view body) {
  if (count_containers(body) > kMaxContainers) {
    return invalid("", fmt::format("the body has more than {} arrays and objects", kMaxContainers));
  }
  Result<Value> value = text::jinja::value_from_json(body);
  if (!value.ok()) return invalid("", "the body is no valid JSON: " + value.error().to_string());
  if (value->dict() == nullptr) {
    return invalid("", fmt::format("the body must be a JSON object, but is {}", json_type(*value)));
  }
  return value;
}

Error invalid(std::string field, std::string message) {
  return {ErrorCode::kInvalidArgument, std::move(message), std::move(field)};
}

const char* json_type(const Value& value) {
  if (value.is_none()) return "null";
  if (value.get_if<bool>() != nullptr) return "a boolean";
  if (value.get_if<int64_t>() != nullptr || value.get_if<BigInt>() != nullptr) return "an integer";
  if (value.get_if<double>() != nullptr) return "a number";
  if (value.string() != nullptr) return "a string";
  if (value.list() != nullptr) return "an array";
  return value.dict() != nullptr ? "an object" : "nothing";
}

Error wrong_type(std::string field, const char* expected, const Value& found) {
  return invalid(std::move(field), fmt::format("must be {}, but is {}", expected, json_type(found)));
}

const Value* Fields::find(std::string_view name) const {
  const Value* value = dict_.find(name);
  return value == nullptr || value->is_none() ? nullptr : value;
}

Status Fields::read(const char* name, bool& out) const {
  const Value* value = find(name);
  if (value == nullptr) return {};
  const bool* flag = value->get_if<bool>();
  if (flag == nullptr) return wrong_type(name_of(name), "a boolean", *value);
  out = *flag;
  return {};
}

Status Fields::read(const char* name, int& out) const {
  const Value* value = find(name);
  if (value == nullptr) return {};
  const auto whole = integer_of(*value);
  if (!whole) return wrong_type(name_of(name), "an integer", *value);
  if (*whole < std::numeric_limits<int>::min() || *whole > std::numeric_limits<int>::max())
    return invalid(name_of(name), fmt::format("is {}, which does not fit 32 bits", *whole));
  out = static_cast<int>(*whole);
  return {};
}

Status Fields::read(const char* name, float& out) const {
  const Value* value = find(name);
  if (value == nullptr) return {};
  const auto number = value->get_if<bool>() != nullptr ? std::nullopt : value->number();
  if (!number) return wrong_type(name_of(name), "a number", *value);
  out = static_cast<float>(*number);
  return {};
}

Status Fields::read(const char* name, std::string& out) const {
  const Value* value = find(name);
  if (value == nullptr) return {};
  if (value->string() == nullptr) return wrong_type(name_of(name), "a string", *value);
  out = value->string()->bytes();
  return {};
}

Status Fields::read(const char* name, std::vector<std::string>& out) const {
  const Value* value = find(name);
  if (value == nullptr) return {};
  out.clear();
  if (value->string() != nullptr) {
    out.push_back(value->string()->bytes());
    return {};
  }
  const List* list = value->list();
  if (list == nullptr) return wrong_type(name_of(name), "a string or an array of strings", *value);
  for (size_t i = 0; i < list->items.size(); ++i) {
    const Value& item = list->items[i];
    if (item.string() == nullptr)
      return wrong_type(fmt::format("{}[{}]", name_of(name), i), "a string", item);
    out.push_back(item.string()->bytes());
  }
  return {};
}

Status Fields::read(const char* name, std::vector<core::TokenId>& out) const {
  const Value* value = find(name);
  if (value == nullptr) return {};
  TERCET_ASSIGN(out, token_ids(*value, name_of(name)));
  return {};
}

Result<std::vector<core::TokenId>> token_ids(const Value& value, const std::string& field) {
  const List* list = value.list();
  if (list == nullptr) return wrong_type(field, "an array of token ids", value);
  std::vector<core::TokenId> tokens;
  tokens.reserve(list->items.size());
  for (size_t i = 0; i < list->items.size(); ++i) {
    const auto id = integer_of(list->items[i]);
    if (!id) return wrong_type(fmt::format("{}[{}]", field, i), "a token id", list->items[i]);
    if (*id < 0 || *id > std::numeric_limits<core::TokenId>::max())
      return invalid(fmt::format("{}[{}]", field, i), fmt::format("is {}, which is no token id", *id));
    tokens.push_back(static_cast<core::TokenId>(*id));
  }
  return tokens;
}

}  // namespace tercet::server
