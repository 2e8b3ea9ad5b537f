// Filters whose result is a string.
#include <algorithm>
#include <utility>

#include "text/jinja/arguments.h"
#include "text/jinja/builtins.h"
#include "text/jinja/error.h"
#include "text/jinja/format.h"
#include "text/jinja/json.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/strings.h"
#include "text/jinja/utf8.h"

namespace tercet::text::jinja {
namespace {

template <MarkedString (*map)(const MarkedString&)>
Value map_filter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "filter", {}, 0);
  const MarkedString text = to_text(runtime, self);
  runtime.charge(text.size() / 4);
  return runtime.string(map(text));
}

MarkedString title_after_separators(const MarkedString& text) {
  // A word begins after white space and after these.
  static constexpr std::u32string_view kSeparators = U"-({[<";
  bool starts_word = true;
  return map_code_points(text, [&](char32_t c) {
    const bool was_start = std::exchange(starts_word, is_space(c) || kSeparators.find(c) != kSeparators.npos);
    return was_start ? to_upper(c) : to_lower(c);
  });
}

MarkedString identity(const MarkedString& text) { return text; }

MarkedString escape(const MarkedString& text) {
  MarkedString result;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text.bytes()[i];
    const char* entity = c == '&'    ? "&amp;"
                         : c == '<'  ? "&lt;"
                         : c == '>'  ? "&gt;"
                         : c == '"'  ? "&#34;"
                         : c == '\'' ? "&#39;"
                                     : nullptr;
    if (entity != nullptr) {
      result.append(entity, text.origin_at(i));
    } else {
      result.append(text, i, i + 1);
    }
  }
  return result;
}

Value trim(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "trim", {"chars"}, 0);
  return runtime.string(strip(to_text(runtime, self), args.string(0), Sides::kBoth));
}

Value replace_filter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "replace", {"old", "new", "count"}, 2);
  const int64_t count = args[2].is_none() ? -1 : args.integer(2, -1);
  return runtime.string(
      replace(runtime, to_text(runtime, self), to_text(runtime, args[0]), to_text(runtime, args[1]), count));
}

Value indent(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "indent", {"width", "first", "blank"}, 0);
  MarkedString indentation;
  if (args[0].string() != nullptr) {
    indentation = *args[0].string();
  } else {
    const auto width = static_cast<size_t>(std::max(args.integer(0, 4), int64_t{0}));
    runtime.check_string_size(width);
    indentation = MarkedString(std::string(width, ' '), Origin::kTemplate);
  }
  MarkedString text = to_text(runtime, self);
  text.append("\n", Origin::kTemplate);  // as Jinja does: a final line break is kept by a line after it
  const auto lines = split_lines(text, false);
  MarkedString result;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) result.append("\n", Origin::kTemplate);
    const bool wanted = i == 0 ? args.boolean(1, false) : args.boolean(2, false) || !lines[i].empty();
    runtime.check_string_size(result.size() + indentation.size() + lines[i].size());
    runtime.charge_bytes(indentation.size() + lines[i].size());
    if (wanted) result.append(indentation);
    result.append(lines[i]);
  }
  return runtime.string(std::move(result));
}

Value center_filter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "center", {"width"}, 0);
  return runtime.string(center(runtime, to_text(runtime, self), args.integer(0, 80)));
}

Value truncate(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "truncate", {"length", "killwords", "end", "leeway"}, 0);
  const MarkedString text = to_text(runtime, self);
  const MarkedString end =
      args.string(2) != nullptr ? *args.string(2) : MarkedString("...", Origin::kTemplate);
  const int64_t wanted = args.integer(0, 255);
  const auto end_length = static_cast<int64_t>(utf8_length(end.bytes()));
  if (wanted < end_length) fail("truncate(): the length is shorter than the end");
  const auto size = static_cast<int64_t>(utf8_length(text.bytes()));
  if (size <= wanted + std::clamp(args.integer(3, 5), int64_t{0}, size)) return runtime.string(text);
  MarkedString result = text.slice(0, utf8_offset(text.bytes(), static_cast<size_t>(wanted - end_length)));
  if (!args.boolean(1, false)) {
    const size_t space = result.bytes().rfind(' ');
    if (space != std::string::npos) result = result.slice(0, space);
  }
  result.append(end);
  return runtime.string(std::move(result));
}

Value format_filter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const MarkedString pattern = to_text(runtime, self);
  if (arguments.named.empty()) {
    return format_percent(runtime, pattern, runtime.list(arguments.positional, true));
  }
  if (!arguments.positional.empty()) fail("format: positional and named arguments cannot be mixed");
  Dict values;
  for (const auto& [name, value] : arguments.named) values.set(name, value);
  return format_percent(runtime, pattern, runtime.dict(std::move(values)));
}

Value tojson(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, 0);
  JsonStyle style;
  style.ensure_ascii = args.boolean(0, false);
  style.sort_keys = args.boolean(3, false);
  if (args.has(1) && !args[1].is_none()) {
    style.multiline = true;
    style.item_separator = ",";
    if (const auto* text = args[1].string()) {
      style.indent = text->bytes();
    } else {
      const auto width = static_cast<size_t>(std::max(args.integer(1, 0), int64_t{0}));
      runtime.check_string_size(width);
      style.indent.assign(width, ' ');
    }
  }
  if (args.has(2) && !args[2].is_none()) {
    const List* separators = args[2].list();
    if (separators == nullptr || separators->items.size() != 2 || separators->items[0].string() == nullptr ||
        separators->items[1].string() == nullptr) {
      fail("tojson(): 'separators' must be a pair of strings");
    }
    style.item_separator = separators->items[0].string()->bytes();
    style.key_separator = separators->items[1].string()->bytes();
  }
  return runtime.string(to_json(runtime, self, style), Origin::kUser);
}

Value pprint(Runtime& runtime, const Value& self, const Arguments&) {
  return runtime.string(repr(runtime, self), Origin::kUser);
}

Value urlencode(Runtime& runtime, const Value& self, const Arguments&) {
  static constexpr std::string_view kSafe = "-._~/";
  const MarkedString text = to_text(runtime, self);
  std::string out;
  for (const char c : text.bytes()) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && (is_alpha(byte) || is_digit(byte) || kSafe.find(c) != std::string_view::npos)) {
      out += c;
    } else {
      out += '%';
      out += "0123456789ABCDEF"[byte >> 4];
      out += "0123456789ABCDEF"[byte & 15];
    }
  }
  return runtime.string(std::move(out), Origin::kUser);
}

constexpr std::pair<std::string_view, Method> kStringFilters[] = {
    {"capitalize", map_filter<capitalize>},
    {"center", center_filter},
    {"e", map_filter<escape>},
    {"escape", map_filter<escape>},
    {"forceescape", map_filter<escape>},
    {"format", format_filter},
    {"indent", indent},
    {"lower", map_filter<lower>},
    {"pprint", pprint},
    {"replace", replace_filter},
    {"safe", map_filter<identity>},
    {"string", map_filter<identity>},
    {"title", map_filter<title_after_separators>},
    {"tojson", tojson},
    {"trim", trim},
    {"truncate", truncate},
    {"upper", map_filter<upper>},
    {"urlencode", urlencode},
};

}  // namespace

Method find_string_filter(std::string_view name) {
  for (const auto& [filter_name, filter] : kStringFilters) {
    if (filter_name == name) return filter;
  }
  return nullptr;
}

}  // namespace tercet::text::jinja
