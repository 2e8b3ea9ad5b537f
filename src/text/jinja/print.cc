#include "text/jinja/print.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "text/jinja/loop.h"
#include "text/jinja/utf8.h"

namespace tercet::text::jinja {
namespace {

void append_escaped(std::string& out, char32_t c) {
  char buffer[16];
  std::snprintf(buffer, sizeof buffer,
                c < 0x100     ? "\\x%02x"
                : c < 0x10000 ? "\\u%04x"
                              : "\\U%08x",
                static_cast<unsigned>(c));
  out += buffer;
}

void append_repr(Runtime& runtime, std::string& out, const Value& value);

void append_items(Runtime& runtime, std::string& out, const List& list) {
  out += list.is_tuple ? '(' : '[';
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) out += ", ";
    append_repr(runtime, out, list.items[i]);
  }
  if (list.is_tuple && list.items.size() == 1) out += ',';
  out += list.is_tuple ? ')' : ']';
}

void append_entries(Runtime& runtime, std::string& out, const Dict& dict) {
  out += '{';
  bool first = true;
  for (const auto& [key, value] : dict.entries()) {
    if (!std::exchange(first, false)) out += ", ";
    append_repr(runtime, out, key);
    out += ": ";
    append_repr(runtime, out, value);
  }
  out += '}';
}

std::string scalar_text(const Value& value) {
  if (value.is_undefined()) return {};
  if (value.is_none()) return "None";
  if (const auto* boolean = value.get_if<bool>()) return *boolean ? "True" : "False";
  if (const auto* integer = value.get_if<int64_t>()) return std::to_string(*integer);
  if (const auto* big = value.get_if<BigInt>()) return *big->digits;
  if (const auto* number = value.get_if<double>()) return float_repr(*number);
  if (const auto* function = value.callable()) return "<function " + function->name + ">";
  if (const auto* loop = value.loop()) {
    return "<LoopContext " + std::to_string(loop->index0 + 1) + "/" + std::to_string(loop->items.size()) +
           ">";
  }
  return "<Namespace>";
}

void append_repr(Runtime& runtime, std::string& out, const Value& value) {
  runtime.charge(1);
  const size_t before = out.size();
  if (const auto* list = value.list()) return append_items(runtime, out, *list);
  if (const auto* dict = value.dict()) return append_entries(runtime, out, *dict);
  if (const auto* text = value.string()) {
    out += repr(text->bytes());
  } else if (value.is_undefined()) {
    out += "Undefined";
  } else {
    out += scalar_text(value);
  }
  runtime.charge_bytes(out.size() - before);
  runtime.check_string_size(out.size());
}

}  // namespace

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view text(buffer, static_cast<size_t>(end - buffer));
  const size_t e = text.find('e');
  int exponent = 0;
  std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), end, exponent);
  // Python writes positional notation from 1e-4 up to below 1e16.
  if (exponent < -4 || exponent >= 16) return std::string(text);
  std::string fixed(400, '\0');
  const auto fixed_end =
      std::to_chars(fixed.data(), fixed.data() + fixed.size(), value, std::chars_format::fixed).ptr;
  fixed.resize(static_cast<size_t>(fixed_end - fixed.data()));
  if (fixed.find('.') == std::string::npos) fixed += ".0";
  return fixed;
}

std::string repr(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t i = 0; i < text.size();) {
    const auto [c, size] = code_point_at(text, i);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (!is_printable(c)) {
      append_escaped(out, c);
    } else {
      out += text.substr(i, size);
    }
    i += size;
  }
  return out + quote;
}

std::string repr(Runtime& runtime, const Value& value) {
  std::string out;
  append_repr(runtime, out, value);
  return out;
}

void append_text(Runtime& runtime, MarkedString& out, const Value& value) {
  if (const auto* text = value.string()) {
    runtime.charge_bytes(text->size());
    runtime.check_string_size(out.size() + text->size());
    out.append(*text);
  } else if (value.list() != nullptr || value.dict() != nullptr) {
    out.append(repr(runtime, value), Origin::kUser);
  } else {
    out.append(scalar_text(value), Origin::kTemplate);
  }
  runtime.check_string_size(out.size());
}

MarkedString to_text(Runtime& runtime, const Value& value) {
  MarkedString out;
  append_text(runtime, out, value);
  return out;
}

}  // namespace tercet::text::jinja
