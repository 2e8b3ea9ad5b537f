// The methods of Python's str.
#include <algorithm>
#include <utility>

#include "text/jinja/arguments.h"
#include "text/jinja/error.h"
#include "text/jinja/format.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/strings.h"
#include "text/jinja/utf8.h"

namespace tercet::text::jinja {
namespace {

const MarkedString& required(const BoundArguments& args, size_t parameter) {
  const MarkedString* text = args.string(parameter);
  if (text == nullptr) fail("expected a string, got None");
  return *text;
}

template <Sides sides>
Value strip_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "strip", {"chars"}, 0);
  runtime.charge(args.string(0) != nullptr ? args.string(0)->size() : 0);
  return runtime.string(strip(*self.string(), args.string(0), sides));
}

template <MarkedString (*map)(const MarkedString&)>
Value map_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "upper", {}, 0);
  runtime.charge(self.string()->size() / 4);
  return runtime.string(map(*self.string()));
}

MarkedString title_words(const MarkedString& text) {
  bool inside_word = false;
  return map_code_points(text, [&](char32_t c) {
    const bool was_inside = std::exchange(inside_word, is_alpha(c));
    return was_inside ? to_lower(c) : to_upper(c);
  });
}

MarkedString swap_case(const MarkedString& text) {
  return map_code_points(text, [](char32_t c) { return is_upper(c) ? to_lower(c) : to_upper(c); });
}

Value texts(Runtime& runtime, std::vector<MarkedString> pieces) {
  std::vector<Value> items;
  for (MarkedString& piece : pieces) items.push_back(runtime.string(std::move(piece)));
  return runtime.list(std::move(items));
}

// Splits at white space; the rest after `limit` splits is one piece.
std::vector<MarkedString> split_words(const MarkedString& text, int64_t limit) {
  std::vector<MarkedString> words;
  const std::string& bytes = text.bytes();
  size_t i = 0;
  while (true) {
    while (i < bytes.size() && is_space(code_point_at(bytes, i).value)) i += code_point_at(bytes, i).size;
    if (i >= bytes.size()) return words;
    if (limit-- == 0) {
      words.push_back(strip(text.slice(i, bytes.size()), nullptr, Sides::kRight));
      return words;
    }
    const size_t begin = i;
    while (i < bytes.size() && !is_space(code_point_at(bytes, i).value)) i += code_point_at(bytes, i).size;
    words.push_back(text.slice(begin, i));
  }
}

// split_words from the end.
std::vector<MarkedString> split_words_from_right(const MarkedString& text, int64_t limit) {
  if (limit < 0) return split_words(text, -1);
  const MarkedString all = strip(text, nullptr, Sides::kRight);
  std::vector<std::pair<size_t, size_t>> words;
  for (size_t i = 0; i < all.size();) {
    const auto [c, size] = code_point_at(all.bytes(), i);
    if (!is_space(c)) {
      if (words.empty() || words.back().second != i) words.emplace_back(i, i);
      words.back().second = i + size;
    }
    i += size;
  }
  const size_t kept = std::min(words.size(), static_cast<size_t>(limit));
  std::vector<MarkedString> result;
  if (kept < words.size()) result.push_back(all.slice(0, words[words.size() - kept - 1].second));
  for (size_t i = words.size() - kept; i < words.size(); ++i) {
    result.push_back(all.slice(words[i].first, words[i].second));
  }
  return result;
}

Value split(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "split", {"sep", "maxsplit"}, 0);
  const MarkedString& text = *self.string();
  const MarkedString* separator = args.string(0);
  int64_t limit = args.integer(1, -1);
  runtime.charge_bytes(text.size());
  if (separator == nullptr) return texts(runtime, split_words(text, limit));
  if (separator->empty()) fail("empty separator");
  std::vector<MarkedString> pieces;
  size_t begin = 0;
  for (; limit != 0; --limit) {
    const size_t end = text.bytes().find(separator->bytes(), begin);
    if (end == std::string::npos) break;
    pieces.push_back(text.slice(begin, end));
    begin = end + separator->size();
  }
  pieces.push_back(text.slice(begin, text.size()));
  return texts(runtime, std::move(pieces));
}

Value rsplit(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "rsplit", {"sep", "maxsplit"}, 0);
  const MarkedString& text = *self.string();
  const MarkedString* separator = args.string(0);
  int64_t limit = args.integer(1, -1);
  runtime.charge_bytes(text.size());
  if (separator == nullptr) return texts(runtime, split_words_from_right(text, limit));
  if (separator->empty()) fail("empty separator");
  std::vector<MarkedString> pieces;
  size_t end = text.size();
  for (; limit != 0 && end >= separator->size(); --limit) {
    const size_t begin = text.bytes().rfind(separator->bytes(), end - separator->size());
    if (begin == std::string::npos) break;
    pieces.push_back(text.slice(begin + separator->size(), end));
    end = begin;
  }
  pieces.push_back(text.slice(0, end));
  std::reverse(pieces.begin(), pieces.end());
  return texts(runtime, std::move(pieces));
}

template <bool from_right>
Value partition(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "partition", {"sep"}, 1);
  const MarkedString& text = *self.string();
  const MarkedString& separator = required(args, 0);
  if (separator.empty()) fail("empty separator");
  runtime.charge_bytes(text.size());
  const size_t found =
      from_right ? text.bytes().rfind(separator.bytes()) : text.bytes().find(separator.bytes());
  std::vector<Value> parts(3, runtime.string(MarkedString()));
  if (found == std::string::npos) {
    parts[from_right ? 2 : 0] = self;
  } else {
    parts[0] = runtime.string(text.slice(0, found));
    parts[1] = runtime.string(separator);
    parts[2] = runtime.string(text.slice(found + separator.size(), text.size()));
  }
  return runtime.list(std::move(parts), true);
}

// startswith and endswith take a string or a tuple of them.
template <bool at_end>
Value has_affix(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const char* name = at_end ? "endswith" : "startswith";
  const BoundArguments args(arguments, name, {"affix", "start", "end"}, 1);
  const Value text = args.has(1) || args.has(2) ? slice(runtime, self, Value(args.integer(1, 0)),
                                                        args.has(2) ? args[2] : Value(None{}), Value(None{}))
                                                : self;
  const std::string& bytes = text.string()->bytes();
  const auto matches = [&](const Value& affix) {
    if (affix.string() == nullptr) fail(std::string(name) + "() needs a string or a tuple of strings");
    return at_end ? bytes.ends_with(affix.string()->bytes()) : bytes.starts_with(affix.string()->bytes());
  };
  if (args[0].list() == nullptr) return matches(args[0]);
  const auto& affixes = args[0].list()->items;
  runtime.charge(affixes.size());
  return std::any_of(affixes.begin(), affixes.end(), matches);
}

Value replace_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "replace", {"old", "new", "count"}, 2);
  runtime.charge_bytes(self.string()->size());
  return runtime.string(
      replace(runtime, *self.string(), required(args, 0), required(args, 1), args.integer(2, -1)));
}

// find, rfind, index and rindex: a position in characters.
template <bool from_right, bool must_exist>
Value find(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "find", {"sub", "start", "end"}, 1);
  const std::string& wanted = required(args, 0).bytes();
  const int64_t size = length(runtime, self);
  int64_t start = args.integer(1, 0);
  start = start < 0 ? std::max(start + size, int64_t{0}) : start;
  const Value stop = args.has(2) ? args[2] : Value(None{});
  size_t found = std::string::npos;
  Value text;
  if (start <= size) {
    text = slice(runtime, self, Value(start), stop, Value(None{}));
    found = from_right ? text.string()->bytes().rfind(wanted) : text.string()->bytes().find(wanted);
  }
  if (found != std::string::npos) {
    return start +
           static_cast<int64_t>(utf8_length(std::string_view(text.string()->bytes()).substr(0, found)));
  }
  if (must_exist) fail("substring not found");
  return int64_t{-1};
}

Value count(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "count", {"sub"}, 1);
  const std::string& text = self.string()->bytes();
  const std::string& wanted = required(args, 0).bytes();
  runtime.charge_bytes(text.size());
  if (wanted.empty()) return static_cast<int64_t>(utf8_length(text)) + 1;
  int64_t count = 0;
  for (size_t i = text.find(wanted); i != std::string::npos; i = text.find(wanted, i + wanted.size()))
    ++count;
  return count;
}

Value join_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "join", {"iterable"}, 1);
  MarkedString result;
  bool is_first = true;
  for (const Value& item : iterate(runtime, args[0])) {
    if (item.is_undefined()) fail_undefined(item);
    if (item.string() == nullptr)
      fail(std::string("join(): expected str instance, ") + item.type_name() + " found");
    if (!std::exchange(is_first, false)) append_text(runtime, result, self);
    append_text(runtime, result, item);
  }
  return runtime.string(std::move(result));
}

Value split_lines_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "splitlines", {"keepends"}, 0);
  runtime.charge_bytes(self.string()->size());
  return texts(runtime, split_lines(*self.string(), args.boolean(0, false)));
}

Value remove_prefix(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "removeprefix", {"prefix"}, 1);
  const MarkedString& text = *self.string();
  const MarkedString& prefix = required(args, 0);
  if (!text.bytes().starts_with(prefix.bytes())) return self;
  return runtime.string(text.slice(prefix.size(), text.size()));
}

Value remove_suffix(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "removesuffix", {"suffix"}, 1);
  const MarkedString& text = *self.string();
  const MarkedString& suffix = required(args, 0);
  if (!text.bytes().ends_with(suffix.bytes())) return self;
  return runtime.string(text.slice(0, text.size() - suffix.size()));
}

enum class Pad { kLeft, kRight, kCenter, kZeros };

template <Pad pad>
Value pad_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "ljust", {"width", "fillchar"}, 1);
  const MarkedString& text = *self.string();
  const std::string fill = pad == Pad::kZeros ? "0" : args.has(1) ? required(args, 1).bytes() : " ";
  if (utf8_length(fill) != 1) fail("the fill character must be exactly one character long");
  const int64_t width = args.integer(0, 0);
  if (pad == Pad::kCenter) return runtime.string(center(runtime, text, width, fill));
  const int64_t missing = width - length(runtime, self);
  MarkedString padding;
  if (missing > 0) {
    runtime.check_string_size(static_cast<size_t>(missing));
    runtime.charge_bytes(static_cast<size_t>(missing));
    for (int64_t i = 0; i < missing; ++i) padding.append(fill, Origin::kTemplate);
  }
  MarkedString result;
  const bool has_sign =
      pad == Pad::kZeros && !text.empty() && (text.bytes()[0] == '-' || text.bytes()[0] == '+');
  if (has_sign) result.append(text, 0, 1);
  if (pad != Pad::kLeft) result.append(padding);
  result.append(text, has_sign ? 1 : 0, text.size());
  if (pad == Pad::kLeft) result.append(padding);
  return runtime.string(std::move(result));
}

// isdigit() and the like: there are characters, and all are of the class.
template <bool (*is_class)(char32_t)>
Value all_of_class(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "isdigit", {}, 0);
  const std::string& text = self.string()->bytes();
  runtime.charge_bytes(text.size());
  for (size_t i = 0; i < text.size();) {
    const auto [c, size] = code_point_at(text, i);
    if (!is_class(c)) return false;
    i += size;
  }
  return !text.empty();
}

bool is_alphanumeric(char32_t c) { return is_alpha(c) || is_digit(c); }

// isupper() and islower(): there is a letter of the wanted case, and none of the other.
template <bool (*is_wanted)(char32_t), bool (*is_other)(char32_t)>
Value has_case(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments args(arguments, "isupper", {}, 0);
  const std::string& text = self.string()->bytes();
  runtime.charge_bytes(text.size());
  bool found = false;
  for (size_t i = 0; i < text.size();) {
    const auto [c, size] = code_point_at(text, i);
    if (is_other(c)) return false;
    found = found || is_wanted(c);
    i += size;
  }
  return found;
}

Value format_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return format_braces(runtime, *self.string(), arguments);
}

constexpr std::pair<std::string_view, Method> kMethods[] = {
    {"capitalize", map_method<capitalize>},
    {"casefold", map_method<lower>},
    {"center", pad_method<Pad::kCenter>},
    {"count", count},
    {"endswith", has_affix<true>},
    {"find", find<false, false>},
    {"format", format_method},
    {"index", find<false, true>},
    {"isalnum", all_of_class<is_alphanumeric>},
    {"isalpha", all_of_class<is_alpha>},
    {"isdecimal", all_of_class<is_digit>},
    {"isdigit", all_of_class<is_digit>},
    {"islower", has_case<is_lower, is_upper>},
    {"isnumeric", all_of_class<is_digit>},
    {"isspace", all_of_class<is_space>},
    {"isupper", has_case<is_upper, is_lower>},
    {"join", join_method},
    {"ljust", pad_method<Pad::kLeft>},
    {"lower", map_method<lower>},
    {"lstrip", strip_method<Sides::kLeft>},
    {"partition", partition<false>},
    {"removeprefix", remove_prefix},
    {"removesuffix", remove_suffix},
    {"replace", replace_method},
    {"rfind", find<true, false>},
    {"rindex", find<true, true>},
    {"rjust", pad_method<Pad::kRight>},
    {"rpartition", partition<true>},
    {"rsplit", rsplit},
    {"rstrip", strip_method<Sides::kRight>},
    {"split", split},
    {"splitlines", split_lines_method},
    {"startswith", has_affix<false>},
    {"strip", strip_method<Sides::kBoth>},
    {"swapcase", map_method<swap_case>},
    {"title", map_method<title_words>},
    {"upper", map_method<upper>},
    {"zfill", pad_method<Pad::kZeros>},
};

}  // namespace

Method find_string_method(std::string_view name) {
  for (const auto& [method_name, method] : kMethods) {
    if (method_name == name) return method;
  }
  return nullptr;
}

}  // namespace tercet::text::jinja
