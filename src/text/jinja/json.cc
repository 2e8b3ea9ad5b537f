#include "text/jinja/json.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "text/jinja/error.h"
#include "text/jinja/print.h"
#include "text/jinja/utf8.h"

namespace tercet::text::jinja {
namespace {

// Builds values straight from the parser's events, so that depth is checked before anything is built.
class ValueBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return add(None{}); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= static_cast<number_unsigned_t>(INT64_MAX)) return add(static_cast<int64_t>(value));
    return add(BigInt{std::make_shared<const std::string>(std::to_string(value))});
  }
  bool number_float(number_float_t value, const string_t& text) override {
    if (text.find_first_of(".eE") != std::string::npos) return add(value);
    return add(BigInt{std::make_shared<const std::string>(text)});
  }
  bool string(string_t& text) override { return add(Value::user_string(text)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Dict()); }
  bool key(string_t& name) override {
    open_.back().key = std::move(name);
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(List()); }
  bool end_array() override { return close(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    message_ = error.what();
    return false;
  }

  const std::string& message() const { return message_; }
  Value take() { return std::move(root_); }

 private:
  struct Container {
    std::variant<List, Dict> value;
    std::string key;
  };

  bool open(std::variant<List, Dict> value) {
    if (open_.size() == kMaxJsonDepth) {
      message_ = "JSON nests deeper than " + std::to_string(kMaxJsonDepth) + " levels";
      return false;
    }
    open_.push_back({std::move(value), {}});
    return true;
  }

  bool close() {
    auto value = std::move(open_.back().value);
    open_.pop_back();
    return std::visit([this](auto&& inner) { return add(Value(std::move(inner))); }, std::move(value));
  }

  bool add(Value value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (auto* list = std::get_if<List>(&open_.back().value)) {
      list->items.push_back(std::move(value));
    } else {
      std::get<Dict>(open_.back().value).set(open_.back().key, std::move(value));
    }
    return true;
  }

  std::vector<Container> open_;
  Value root_;
  std::string message_;
};

class JsonWriter {
 public:
  JsonWriter(Runtime& runtime, const JsonStyle& style) : runtime_(runtime), style_(style) {}

  void write(const Value& value) {
    runtime_.charge(1);
    if (const auto* list = value.list()) {
      write_list(*list);
    } else if (const auto* dict = value.dict()) {
      write_dict(*dict);
    } else if (const auto* text = value.string()) {
      write_string(text->bytes());
    } else {
      out_ += scalar(value);
    }
    runtime_.check_string_size(out_.size());
  }

  std::string take() { return std::move(out_); }

 private:
  static std::string scalar(const Value& value) {
    if (value.is_none()) return "null";
    if (const auto* boolean = value.get_if<bool>()) return *boolean ? "true" : "false";
    if (const auto* number = value.get_if<double>()) {
      if (std::isnan(*number)) return "NaN";
      if (std::isinf(*number)) return *number < 0 ? "-Infinity" : "Infinity";
      return float_repr(*number);
    }
    if (const auto* integer = value.get_if<int64_t>()) return std::to_string(*integer);
    if (const auto* big = value.get_if<BigInt>()) return *big->digits;
    fail(std::string("tojson: a value of type ") + value.type_name() + " is not JSON serializable");
  }

  static std::string key_text(const Value& key) {
    if (const auto* text = key.string()) return text->bytes();
    if (key.list() != nullptr) fail("tojson: a tuple cannot be a key in JSON");
    return scalar(key);
  }

  void new_line() {
    if (!style_.multiline) return;
    runtime_.check_string_size(out_.size() + level_ * style_.indent.size());
    runtime_.charge_bytes(level_ * style_.indent.size());
    out_ += '\n';
    for (size_t i = 0; i < level_; ++i) out_ += style_.indent;
  }

  void write_list(const List& list) {
    if (list.items.empty()) return void(out_ += "[]");
    out_ += '[';
    ++level_;
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      new_line();
      write(list.items[i]);
    }
    --level_;
    new_line();
    out_ += ']';
  }

  void write_dict(const Dict& dict) {
    if (dict.size() == 0) return void(out_ += "{}");
    std::vector<std::pair<std::string, const Value*>> entries;
    for (const auto& [key, value] : dict.entries()) entries.emplace_back(key_text(key), &value);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
    }
    out_ += '{';
    ++level_;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      new_line();
      write_string(entries[i].first);
      out_ += style_.key_separator;
      write(*entries[i].second);
    }
    --level_;
    new_line();
    out_ += '}';
  }

  void write_string(std::string_view text) {
    runtime_.charge_bytes(text.size());
    out_ += '"';
    for (size_t i = 0; i < text.size();) {
      const auto [c, size] = code_point_at(text, i);
      write_character(c, text.substr(i, size));
      i += size;
    }
    out_ += '"';
  }

  void write_character(char32_t c, std::string_view bytes) {
    switch (c) {
      case '"': return void(out_ += "\\\"");
      case '\\': return void(out_ += "\\\\");
      case '\n': return void(out_ += "\\n");
      case '\r': return void(out_ += "\\r");
      case '\t': return void(out_ += "\\t");
      case '\f': return void(out_ += "\\f");
      case '\b': return void(out_ += "\\b");
      default: break;
    }
    if (c >= 0x20 && (!style_.ensure_ascii || c < 0x7F)) return void(out_ += bytes);
    if (c < 0x10000) return write_unit(c);
    write_unit(0xD800 + ((c - 0x10000) >> 10));
    write_unit(0xDC00 + ((c - 0x10000) & 0x3FF));
  }

  void write_unit(char32_t unit) {
    char buffer[8];
    std::snprintf(buffer, sizeof buffer, "\\u%04x", static_cast<unsigned>(unit & 0xFFFF));
    out_ += buffer;
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  std::string out_;
  size_t level_ = 0;
};

}  // namespace

Result<Value> value_from_json(std::string_view json) {
  ValueBuilder builder;
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &builder)) {
    return Error{ErrorCode::kInvalidArgument, builder.message(), "JSON"};
  }
  return builder.take();
}

std::string to_json(Runtime& runtime, const Value& value, const JsonStyle& style) {
  JsonWriter writer(runtime, style);
  writer.write(value);
  return writer.take();
}

}  // namespace tercet::text::jinja
