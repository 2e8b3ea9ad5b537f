#include "model/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace tercet::model {

using nlohmann::json;

// Values are copied and printed by functions that recurse.
constexpr int kMaxDepth = 64;

struct HfConfig::Node {
  json object;
};

namespace {

// The field, or nullptr where it is absent or null.
const json* find(const json& object, std::string_view key) {
  const auto found = object.find(std::string(key));
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string shown(const json& value) {
  const std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

bool is_int(const json& value) {
  return value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX);
}

}  // namespace

Result<HfConfig> HfConfig::open(const std::string& path) {
  TERCET_ASSIGN(const std::string text, read_file(path));
  return parse(text, path);
}

Result<HfConfig> HfConfig::parse(std::string_view text, const std::string& path) {
  bool is_too_deep = false;
  const auto keep = [&](int depth, json::parse_event_t, json&) {
    is_too_deep = is_too_deep || depth > kMaxDepth;
    return !is_too_deep;
  };
  json root = json::parse(text, keep, /*allow_exceptions=*/false);
  if (is_too_deep)
    return Error{ErrorCode::kCorrupt, fmt::format("nests values more than {} deep", kMaxDepth), path};
  if (root.is_discarded()) return Error{ErrorCode::kCorrupt, "is not JSON", path};
  if (!root.is_object()) return Error{ErrorCode::kCorrupt, "is no JSON object", path};
  return HfConfig(std::make_shared<Node>(Node{std::move(root)}), path, "");
}

bool HfConfig::has(std::string_view key) const { return find(node_->object, key) != nullptr; }

Error HfConfig::error(ErrorCode code, std::string_view key, std::string message) const {
  return {code, std::move(message), fmt::format("{}: {}{}", path_, prefix_, key)};
}

// Finds the field as `value`; returns an error from the function where it is absent or `is` is false.
#define TERCET_FIELD(key, is, what)                                                                  \
  const json* value = find(node_->object, key);                                                      \
  if (value == nullptr) return error(ErrorCode::kNotFound, key, "is missing; " what " is expected"); \
  if (!(is))                                                                                         \
  return error(ErrorCode::kInvalidArgument, key, fmt::format("is {}; " what " is expected", shown(*value)))

Result<int64_t> HfConfig::get_int(std::string_view key) const {
  TERCET_FIELD(key, is_int(*value), "a whole number");
  return value->get<int64_t>();
}

Result<double> HfConfig::get_float(std::string_view key) const {
  TERCET_FIELD(key, value->is_number(), "a number");
  return value->get<double>();
}

Result<bool> HfConfig::get_bool(std::string_view key) const {
  TERCET_FIELD(key, value->is_boolean(), "true or false");
  return value->get<bool>();
}

Result<std::string> HfConfig::get_string(std::string_view key) const {
  TERCET_FIELD(key, value->is_string(), "a string");
  return value->get<std::string>();
}

Result<std::vector<int64_t>> HfConfig::get_ints(std::string_view key) const {
  const auto all_ints = [](const json& items) { return std::all_of(items.begin(), items.end(), is_int); };
  TERCET_FIELD(key, is_int(*value) || (value->is_array() && all_ints(*value)), "a list of whole numbers");
  if (!value->is_array()) return std::vector{value->get<int64_t>()};
  return value->get<std::vector<int64_t>>();
}

Result<std::vector<double>> HfConfig::get_floats(std::string_view key) const {
  const auto is_number = [](const json& item) { return item.is_number(); };
  TERCET_FIELD(key, value->is_array() && std::all_of(value->begin(), value->end(), is_number),
               "a list of numbers");
  return value->get<std::vector<double>>();
}

Result<std::vector<std::string>> HfConfig::get_strings(std::string_view key) const {
  const auto is_string = [](const json& item) { return item.is_string(); };
  TERCET_FIELD(key, value->is_array() && std::all_of(value->begin(), value->end(), is_string),
               "a list of strings");
  return value->get<std::vector<std::string>>();
}

Result<HfConfig> HfConfig::get_object(std::string_view key) const {
  TERCET_FIELD(key, value->is_object(), "an object");
  return HfConfig(std::make_shared<Node>(Node{*value}), path_, fmt::format("{}{}.", prefix_, key));
}

#undef TERCET_FIELD

Result<int64_t> HfConfig::get_int_or(std::string_view key, int64_t fallback) const {
  return has(key) ? get_int(key) : fallback;
}

Result<double> HfConfig::get_float_or(std::string_view key, double fallback) const {
  return has(key) ? get_float(key) : fallback;
}

Result<bool> HfConfig::get_bool_or(std::string_view key, bool fallback) const {
  return has(key) ? get_bool(key) : fallback;
}

Result<std::string> HfConfig::get_string_or(std::string_view key, std::string_view fallback) const {
  return has(key) ? get_string(key) : std::string(fallback);
}

}  // namespace tercet::model
