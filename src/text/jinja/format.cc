#include "text/jinja/format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>

#include "text/jinja/error.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/utf8.h"

namespace tercet::text::jinja {
namespace {

constexpr size_t kMaxPrecision = 100;

struct Spec {
  std::string fill = " ";
  char align = '\0';  // '<', '>', '^' or '='; none: by type
  char sign = '-';
  bool alternate = false;
  bool thousands = false;
  size_t width = 0;
  std::optional<size_t> precision;
  char type = '\0';
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A run of digits at `position`, which moves behind it.
std::optional<size_t> take_number(std::string_view text, size_t& position) {
  if (position >= text.size() || !is_digit(text[position])) return std::nullopt;
  size_t value = 0;
  while (position < text.size() && is_digit(text[position])) {
    value = std::min<size_t>(value * 10 + static_cast<size_t>(text[position++] - '0'), size_t{1} << 40);
  }
  return value;
}

std::string digits_of(uint64_t magnitude, unsigned base, bool upper) {
  const char* alphabet = upper ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string digits;
  do {
    digits += alphabet[magnitude % base];
    magnitude /= base;
  } while (magnitude != 0);
  std::reverse(digits.begin(), digits.end());
  return digits;
}

void group_thousands(std::string& digits) {
  const size_t point = digits.find_first_not_of("0123456789");
  for (size_t i = point == std::string::npos ? digits.size() : point; i > 3;) digits.insert(i -= 3, ",");
}

std::string integer_digits(const Value& value, const Spec& spec, bool& is_negative) {
  if (const auto* big = value.get_if<BigInt>()) {
    is_negative = big->digits->front() == '-';
    return is_negative ? big->digits->substr(1) : *big->digits;
  }
  const int64_t number = *value.integer();
  is_negative = number < 0;
  const uint64_t magnitude = is_negative ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
  switch (spec.type) {
    case 'x':
    case 'X': return (spec.alternate ? "0x" : "") + digits_of(magnitude, 16, spec.type == 'X');
    case 'o': return (spec.alternate ? "0o" : "") + digits_of(magnitude, 8, false);
    case 'b': return (spec.alternate ? "0b" : "") + digits_of(magnitude, 2, false);
    default: return digits_of(magnitude, 10, false);
  }
}

std::string float_digits(double number, const Spec& spec, bool& is_negative) {
  is_negative = std::signbit(number) && !std::isnan(number);
  const double magnitude = std::abs(number);
  if (std::isnan(magnitude)) return "nan";
  if (std::isinf(magnitude)) return "inf";
  if (spec.type == '\0' && !spec.precision) return float_repr(magnitude);
  const size_t precision = spec.precision.value_or(6);
  if (precision > kMaxPrecision) fail("a format's precision is above " + std::to_string(kMaxPrecision));
  const char type = spec.type == '\0' ? 'g' : spec.type == '%' ? 'f' : spec.type;
  const char pattern[] = {'%', '.', '*', type, '\0'};
  std::string buffer(512, '\0');
  const int size = std::snprintf(buffer.data(), buffer.size(), pattern, static_cast<int>(precision),
                                 spec.type == '%' ? magnitude * 100 : magnitude);
  buffer.resize(static_cast<size_t>(size));
  return spec.type == '%' ? buffer + "%" : buffer;
}

// Pads to the width, which counts characters.
void append_padded(Runtime& runtime, MarkedString& out, const MarkedString& body, size_t sign_size,
                   char align, const Spec& spec) {
  const size_t length = utf8_length(body.bytes());
  const size_t padding = spec.width > length ? spec.width - length : 0;
  runtime.check_string_size(out.size() + body.size() + padding * spec.fill.size());
  runtime.charge_bytes(body.size() + padding * spec.fill.size());
  const size_t before = align == '<' || align == '=' ? 0 : align == '^' ? padding / 2 : padding;
  const auto pad = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) out.append(spec.fill, Origin::kTemplate);
  };
  if (align == '=') {
    out.append(body, 0, sign_size);
    pad(padding);
    out.append(body, sign_size, body.size());
    return;
  }
  pad(before);
  out.append(body);
  pad(padding - before);
}

void append_number(Runtime& runtime, MarkedString& out, const Value& value, const Spec& spec) {
  bool is_negative = false;
  const bool as_float = value.get_if<double>() != nullptr || std::string_view("fFeEgG%").find(spec.type) < 7;
  std::string digits =
      as_float ? float_digits(*value.number(), spec, is_negative) : integer_digits(value, spec, is_negative);
  if (spec.thousands) group_thousands(digits);
  const std::string sign = is_negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  append_padded(runtime, out, MarkedString(sign + digits, Origin::kTemplate), sign.size(),
                spec.align == '\0' ? '>' : spec.align, spec);
}

void append_string(Runtime& runtime, MarkedString& out, const MarkedString& text, const Spec& spec) {
  const size_t end = spec.precision ? utf8_offset(text.bytes(), *spec.precision) : text.size();
  append_padded(runtime, out, text.slice(0, end), 0, spec.align == '\0' ? '<' : spec.align, spec);
}

bool is_type(char type, std::string_view types) {
  return type != '\0' && types.find(type) != std::string_view::npos;
}

// --- "..." % values
// ---------------------------------------------------------------------------------------------

class PercentFormatter {
 public:
  PercentFormatter(Runtime& runtime, const MarkedString& pattern, const Value& values)
      : runtime_(runtime), pattern_(pattern), bytes_(pattern.bytes()), values_(values) {}

  Value run() {
    for (size_t i = 0; i < bytes_.size();) {
      const size_t percent = std::min(bytes_.find('%', i), bytes_.size());
      out_.append(pattern_, i, percent);
      i = percent;
      if (i < bytes_.size()) directive(++i);
    }
    // Only a tuple, or a value that cannot be subscripted, has to be used up.
    const List* list = values_.list();
    const bool all_used = list != nullptr ? !list->is_tuple || next_ == list->items.size()
                                          : next_ > 0 || values_.dict() != nullptr || values_.is_undefined();
    if (!all_used) fail("not all arguments converted during string formatting");
    return runtime_.string(std::move(out_));
  }

 private:
  void directive(size_t& i) {
    Spec spec;
    const Value* named = nullptr;
    if (i < bytes_.size() && bytes_[i] == '(') {
      const size_t close = bytes_.find(')', i);
      if (close == std::string::npos) fail("incomplete format key");
      if (values_.dict() == nullptr) fail("format requires a mapping");
      named = values_.dict()->find(std::string_view(bytes_).substr(i + 1, close - i - 1));
      if (named == nullptr) fail("format key is missing in the mapping");
      i = close + 1;
    }
    for (; i < bytes_.size() && is_type(bytes_[i], "-0+ #"); ++i) {
      if (bytes_[i] == '-') spec.align = '<';
      if (bytes_[i] == '0' && spec.align == '\0') spec.align = '=';
      if (bytes_[i] == '+' || bytes_[i] == ' ') spec.sign = bytes_[i];
      if (bytes_[i] == '#') spec.alternate = true;
    }
    if (spec.align == '=') spec.fill = "0";
    spec.width = take_number(bytes_, i).value_or(0);
    if (i < bytes_.size() && bytes_[i] == '.') spec.precision = take_number(bytes_, ++i).value_or(0);
    if (i >= bytes_.size()) fail("incomplete format");
    spec.type = bytes_[i++];
    if (spec.type == '%') return out_.append("%", Origin::kTemplate);
    convert(named != nullptr ? *named : next_value(), spec);
  }

  const Value& next_value() {
    const List* tuple = values_.list();
    const bool is_tuple = tuple != nullptr && tuple->is_tuple;
    if (next_ >= (is_tuple ? tuple->items.size() : 1)) fail("not enough arguments for format string");
    return is_tuple ? tuple->items[next_++] : (++next_, values_);
  }

  void convert(const Value& value, Spec& spec) {
    if (is_type(spec.type, "sra")) {
      if (spec.align == '\0' || spec.align == '=') spec.align = '>';
      spec.fill = " ";
      return append_string(
          runtime_, out_,
          spec.type == 's' ? to_text(runtime_, value) : MarkedString(repr(runtime_, value), Origin::kUser),
          spec);
    }
    if (!is_type(spec.type, "diuxXofFeEgG"))
      fail(std::string("unsupported format character '") + spec.type + "'");
    if (!value.is_number())
      fail(std::string("%") + spec.type + " format: a number is required, not " + value.type_name());
    const auto number = value.get_if<double>();
    if (number != nullptr && is_type(spec.type, "diu")) {
      if (!(std::abs(*number) < 9e18)) fail("this float cannot be shown as an integer");
      return append_number(runtime_, out_, Value(static_cast<int64_t>(*number)), spec);
    }
    if (number != nullptr && is_type(spec.type, "xXo")) fail("an integer is required, not float");
    append_number(runtime_, out_, value, spec);
  }

  Runtime& runtime_;
  const MarkedString& pattern_;
  const std::string& bytes_;
  const Value& values_;
  MarkedString out_;
  size_t next_ = 0;
};

// --- "...".format()
// ---------------------------------------------------------------------------------------------

Spec parse_spec(std::string_view text) {
  Spec spec;
  size_t i = 0;
  const auto is_align = [&](size_t at) { return at < text.size() && is_type(text[at], "<>^="); };
  if (!text.empty()) {
    const size_t fill = code_point_at(text, 0).size;
    if (is_align(fill)) {
      spec.fill = text.substr(0, fill);
      spec.align = text[fill];
      i = fill + 1;
    } else if (is_align(0)) {
      spec.align = text[i++];
    }
  }
  if (i < text.size() && is_type(text[i], "+- ")) spec.sign = text[i++];
  if (i < text.size() && text[i] == '#') spec.alternate = (++i, true);
  if (i < text.size() && text[i] == '0') {
    ++i;
    if (spec.align == '\0') spec.align = '=', spec.fill = "0";
  }
  spec.width = take_number(text, i).value_or(0);
  if (i < text.size() && text[i] == ',') spec.thousands = (++i, true);
  if (i < text.size() && text[i] == '.') {
    spec.precision = take_number(text, ++i);
    if (!spec.precision) fail("format specifier missing precision");
  }
  if (i < text.size()) spec.type = text[i++];
  if (i != text.size()) fail("invalid format specifier '" + std::string(text) + "'");
  return spec;
}

class BraceFormatter {
 public:
  BraceFormatter(Runtime& runtime, const MarkedString& pattern, const Arguments& arguments)
      : runtime_(runtime), pattern_(pattern), bytes_(pattern.bytes()), arguments_(arguments) {}

  Value run() {
    for (size_t i = 0; i < bytes_.size();) {
      const size_t brace = std::min(bytes_.find_first_of("{}", i), bytes_.size());
      out_.append(pattern_, i, brace);
      i = brace;
      if (i >= bytes_.size()) break;
      if (i + 1 < bytes_.size() && bytes_[i + 1] == bytes_[i]) {
        out_.append(pattern_, i, i + 1);
        i += 2;
      } else if (bytes_[i] == '}') {
        fail("single '}' encountered in format string");
      } else {
        const size_t close = bytes_.find('}', i);
        if (close == std::string::npos) fail("single '{' encountered in format string");
        field(std::string_view(bytes_).substr(i + 1, close - i - 1));
        i = close + 1;
      }
    }
    return runtime_.string(std::move(out_));
  }

 private:
  void field(std::string_view text) {
    if (text.find('{') != std::string_view::npos) fail("nested replacement fields are not supported");
    const size_t colon = text.find(':');
    std::string_view name = text.substr(0, colon);
    const Spec spec = colon == std::string_view::npos ? Spec() : parse_spec(text.substr(colon + 1));
    char conversion = 's';
    bool is_converted = false;
    if (const size_t mark = name.find('!'); mark != std::string_view::npos) {
      if (mark + 2 != name.size() || !is_type(name[mark + 1], "sr"))
        fail("unknown conversion in format string");
      conversion = name[mark + 1];
      is_converted = true;
      name = name.substr(0, mark);
    }
    const Value value = lookup(name);
    if (conversion == 'r') {
      append_string(runtime_, out_, MarkedString(repr(runtime_, value), Origin::kUser), spec);
    } else if (!is_converted && value.is_number() && (value.get_if<bool>() == nullptr || spec.type != '\0')) {
      if (!is_type(spec.type, "bdoxXeEfFgG%") && spec.type != '\0') fail("unknown format code for a number");
      if (value.get_if<double>() && is_type(spec.type, "bdoxX")) fail("this format code needs an integer");
      append_number(runtime_, out_, value, spec);
    } else {
      if (spec.type != '\0' && spec.type != 's') fail("this format code needs a number");
      append_string(runtime_, out_, to_text(runtime_, value), spec);
    }
  }

  Value lookup(std::string_view name) {
    size_t i = std::min(name.find_first_of(".["), name.size());
    Value value = argument(name.substr(0, i));
    while (i < name.size()) {
      const bool is_attribute = name[i] == '.';
      const size_t end =
          is_attribute ? std::min(name.find_first_of(".[", i + 1), name.size()) : name.find(']', i);
      if (end == std::string_view::npos) fail("expected ']' in format string");
      const std::string_view key = name.substr(i + 1, end - i - 1);
      size_t digits = 0;
      const auto index = take_number(key, digits);
      if (is_attribute) {
        value = attribute(value, key);
      } else if (index && digits == key.size()) {
        value = subscript(runtime_, value, Value(static_cast<int64_t>(*index)));
      } else {
        value = subscript(runtime_, value, Value::user_string(key));
      }
      i = is_attribute ? end : end + 1;
      if (i < name.size() && name[i] != '.' && name[i] != '[')
        fail("only '.' or '[' may follow ']' in format string");
    }
    return value;
  }

  const Value& argument(std::string_view name) {
    size_t digits = 0;
    const auto index = take_number(name, digits);
    if (name.empty() || (index && digits == name.size())) {
      const size_t position = index ? *index : next_++;
      if (position < arguments_.positional.size()) return arguments_.positional[position];
      fail("replacement index " + std::to_string(position) + " out of range for positional arguments");
    }
    for (const auto& [key, value] : arguments_.named) {
      if (key == name) return value;
    }
    fail("format string names '" + std::string(name) + "', which is not an argument");
  }

  Runtime& runtime_;
  const MarkedString& pattern_;
  const std::string& bytes_;
  const Arguments& arguments_;
  MarkedString out_;
  size_t next_ = 0;
};

}  // namespace

Value format_percent(Runtime& runtime, const MarkedString& pattern, const Value& values) {
  return PercentFormatter(runtime, pattern, values).run();
}

Value format_braces(Runtime& runtime, const MarkedString& pattern, const Arguments& arguments) {
  return BraceFormatter(runtime, pattern, arguments).run();
}

}  // namespace tercet::text::jinja
