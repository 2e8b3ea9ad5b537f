// Filters whose result is a number, and `default`.
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
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

// The number that Python's float() reads from a string.
std::optional<double> parse_float(const MarkedString& text) {
  std::string digits = strip(text, nullptr, Sides::kBoth).bytes();
  if (digits.empty() || digits.find_first_of("xXpP(") != std::string::npos) return std::nullopt;
  std::erase(digits, '_');
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  if (end != digits.c_str() + digits.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> parse_integer(const MarkedString& text, int64_t base) {
  std::string digits = strip(text, nullptr, Sides::kBoth).bytes();
  std::erase(digits, '_');
  if (digits.empty() || base < 2 || base > 36 || is_space(static_cast<unsigned char>(digits[0])))
    return std::nullopt;
  const size_t start = digits[0] == '-' || digits[0] == '+' ? 1 : 0;
  if ((base == 8 || base == 2) && digits.size() > start + 2 && digits[start] == '0' &&
      (digits[start + 1] | 0x20) == (base == 8 ? 'o' : 'b')) {
    digits.erase(start, 2);
  }
  errno = 0;
  char* end = nullptr;
  const long long value = std::strtoll(digits.c_str(), &end, static_cast<int>(base));
  if (errno != 0 || end != digits.c_str() + digits.size() || end == digits.c_str()) return std::nullopt;
  return value;
}

std::optional<int64_t> truncated(double value) {
  if (!(std::abs(value) < 9.2e18)) return std::nullopt;
  return static_cast<int64_t>(value);
}

Value int_filter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "int", {"default", "base"}, 0);
  if (self.is_undefined()) fail_undefined(self);
  if (self.get_if<BigInt>() != nullptr) return self;
  std::optional<int64_t> result = self.integer();
  if (const auto* number = self.get_if<double>()) result = truncated(*number);
  if (const auto* text = self.string()) {
    runtime.charge_bytes(text->size());
    result = parse_integer(*text, args.integer(1, 10));
    if (!result) {
      if (const auto number = parse_float(*text)) result = truncated(*number);
    }
  }
  if (result) return *result;
  return args.has(0) ? args[0] : Value(int64_t{0});
}

Value float_filter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "float", {"default"}, 0);
  if (self.is_undefined()) fail_undefined(self);
  std::optional<double> result = self.number();
  if (const auto* text = self.string()) {
    runtime.charge_bytes(text->size());
    result = parse_float(*text);
  }
  if (result) return *result;
  return args.has(0) ? args[0] : Value(0.0);
}

Value abs_filter(Runtime&, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "abs", {}, 0);
  if (self.is_undefined()) fail_undefined(self);
  if (!self.is_number()) fail(std::string("bad operand type for abs(): '") + self.type_name() + "'");
  if (const auto* number = self.get_if<double>()) return std::abs(*number);
  const auto* big = self.get_if<BigInt>();
  const bool is_negative = big != nullptr ? big->digits->front() == '-' : *self.integer() < 0;
  if (is_negative) return negate(self);
  return big != nullptr ? self : Value(*self.integer());
}

double round_half_even(double value, int precision) {
  if (precision < 0) {
    const double scale = std::pow(10.0, -precision);
    return std::nearbyint(value / scale) * scale;
  }
  // The C library rounds the exact binary value, as Python does.
  char buffer[400];
  const int size = std::snprintf(buffer, sizeof buffer, "%.*f", precision, value);
  return size > 0 && size < static_cast<int>(sizeof buffer) ? std::strtod(buffer, nullptr) : value;
}

Value round_filter(Runtime&, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "round", {"precision", "method"}, 0);
  if (self.is_undefined()) fail_undefined(self);
  const auto number = self.number();
  if (!number) fail(std::string("round: a value of type ") + self.type_name() + " cannot be rounded");
  const int64_t precision = args.integer(0, 0);
  const std::string method = args.string(1) != nullptr ? args.string(1)->bytes() : "common";
  if (method != "common" && method != "ceil" && method != "floor")
    fail("round: method must be common, ceil or floor");
  if (precision < -300 || precision > 300) fail("round: the precision is out of range");
  if (method == "common") {
    const bool is_integer = self.get_if<double>() == nullptr;
    if (is_integer && precision >= 0) return self.integer() ? Value(*self.integer()) : self;
    const double rounded = round_half_even(*number, static_cast<int>(precision));
    if (is_integer && truncated(rounded)) return *truncated(rounded);
    return rounded;
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  return (method == "ceil" ? std::ceil(*number * scale) : std::floor(*number * scale)) / scale;
}

Value length_filter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "length", {}, 0);
  return length(runtime, self);
}

Value word_count(Runtime& runtime, const Value& self, const Arguments&) {
  const MarkedString text = to_text(runtime, self);
  int64_t words = 0;
  bool inside = false;
  for (size_t i = 0; i < text.size();) {
    const auto [c, size] = code_point_at(text.bytes(), i);
    const bool is_word = is_alpha(c) || is_digit(c) || c == '_';
    words += is_word && !inside;
    inside = is_word;
    i += size;
  }
  return words;
}

Value default_filter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "default", {"default_value", "boolean"}, 0);
  const bool is_missing = self.is_undefined() || (args.boolean(1, false) && !self.truthy());
  if (!is_missing) return self;
  return args.has(0) ? args[0] : runtime.string(MarkedString());
}

constexpr std::pair<std::string_view, Method> kNumberFilters[] = {
    {"abs", abs_filter},         {"count", length_filter}, {"d", default_filter},
    {"default", default_filter}, {"float", float_filter},  {"int", int_filter},
    {"length", length_filter},   {"round", round_filter},  {"wordcount", word_count},
};

}  // namespace

Method find_number_filter(std::string_view name) {
  for (const auto& [filter_name, filter] : kNumberFilters) {
    if (filter_name == name) return filter;
  }
  return nullptr;
}

Method find_filter(std::string_view name) {
  if (const Method filter = find_string_filter(name)) return filter;
  if (const Method filter = find_sequence_filter(name)) return filter;
  return find_number_filter(name);
}

}  // namespace tercet::text::jinja
