#include "text/jinja/operators.h"

#include <algorithm>
#include <optional>

#include "text/jinja/error.h"
#include "text/jinja/methods.h"
#include "text/jinja/print.h"
#include "text/jinja/utf8.h"

namespace tercet::text::jinja {
namespace {

// A position in a sequence of `size`, Python's way: negative counts from the end; absent if outside.
std::optional<size_t> position_of(int64_t index, size_t size) {
  const auto signed_size = static_cast<int64_t>(size);
  if (index < 0) index += signed_size;
  if (index < 0 || index >= signed_size) return std::nullopt;
  return static_cast<size_t>(index);
}

struct SliceRange {
  int64_t start, stop, step;
};

std::optional<int64_t> slice_part(const Value& value) {
  if (value.is_none()) return std::nullopt;
  if (const auto integer = value.integer()) return integer;
  if (value.is_undefined()) fail_undefined(value);
  fail("slice indices must be integers or None");
}

SliceRange slice_range(size_t size, const Value& start, const Value& stop, const Value& step) {
  const auto length = static_cast<int64_t>(size);
  SliceRange range{0, 0, slice_part(step).value_or(1)};
  if (range.step == 0) fail("slice step cannot be zero");
  range.step = std::clamp(range.step, -length - 1, length + 1);  // the same items, and no overflow
  const bool backward = range.step < 0;
  const auto clamp = [&](int64_t index) {
    if (index < 0) index = std::max(index + length, int64_t{-1});
    return std::clamp(index, int64_t{backward ? -1 : 0}, backward ? length - 1 : length);
  };
  const auto first = slice_part(start);
  const auto last = slice_part(stop);
  range.start = first ? clamp(*first) : (backward ? length - 1 : 0);
  range.stop = last ? clamp(*last) : (backward ? -1 : length);
  return range;
}

template <class Visit>
void visit_range(const SliceRange& range, Visit visit) {
  for (int64_t i = range.start; range.step > 0 ? i < range.stop : i > range.stop; i += range.step) {
    visit(static_cast<size_t>(i));
  }
}

// Byte positions of all code points, and the end.
std::vector<size_t> code_point_offsets(std::string_view text) {
  std::vector<size_t> offsets;
  for (size_t i = 0; i < text.size(); i += code_point_at(text, i).size) offsets.push_back(i);
  offsets.push_back(text.size());
  return offsets;
}

Value slice_string(Runtime& runtime, const MarkedString& text, const Value& start, const Value& stop,
                   const Value& step) {
  runtime.charge_bytes(text.size());
  const auto offsets = code_point_offsets(text.bytes());
  const SliceRange range = slice_range(offsets.size() - 1, start, stop, step);
  MarkedString result;
  if (range.step == 1) {
    if (range.start < range.stop) {
      result =
          text.slice(offsets[static_cast<size_t>(range.start)], offsets[static_cast<size_t>(range.stop)]);
    }
  } else {
    visit_range(range, [&](size_t i) { result.append(text, offsets[i], offsets[i + 1]); });
  }
  return runtime.string(std::move(result));
}

bool equal_lists(Runtime& runtime, const List& left, const List& right) {
  if (left.is_tuple != right.is_tuple || left.items.size() != right.items.size()) return false;
  for (size_t i = 0; i < left.items.size(); ++i) {
    if (!equal(runtime, left.items[i], right.items[i])) return false;
  }
  return true;
}

bool equal_dicts(Runtime& runtime, const Dict& left, const Dict& right) {
  if (left.size() != right.size()) return false;
  for (const auto& [key, value] : left.entries()) {
    const Value* other = right.lookup(key);
    if (other == nullptr || !equal(runtime, value, *other)) return false;
  }
  return true;
}

int sign(auto left, auto right) { return left < right ? -1 : left > right ? 1 : 0; }

int order_numbers(const Value& left, const Value& right) {
  if (left.integer() && right.integer()) return sign(*left.integer(), *right.integer());
  return sign(*left.number(), *right.number());
}

}  // namespace

void fail_undefined(const Value& value) {
  const auto* undefined = value.get_if<Undefined>();
  fail(undefined != nullptr && undefined->reason ? *undefined->reason : "value is undefined");
}

std::string describe_object(const Value& value) {
  if (value.is_none()) return "'None'";
  return std::string("'") + value.type_name() + " object'";
}

bool equal(Runtime& runtime, const Value& left, const Value& right) {
  runtime.charge(1);
  if (left.string() != nullptr && right.string() != nullptr) {
    if (left.string()->size() != right.string()->size()) return false;
    runtime.charge_bytes(left.string()->size());
    return left.string()->bytes() == right.string()->bytes();
  }
  if (left.is_number() && right.is_number()) {
    const auto* a = left.get_if<BigInt>();
    const auto* b = right.get_if<BigInt>();
    if (a != nullptr && b != nullptr) return *a->digits == *b->digits;
    return order_numbers(left, right) == 0 && *left.number() == *right.number();
  }
  if (left.list() != nullptr && right.list() != nullptr) {
    return left.list() == right.list() || equal_lists(runtime, *left.list(), *right.list());
  }
  if (left.dict() != nullptr && right.dict() != nullptr) {
    return left.dict() == right.dict() || equal_dicts(runtime, *left.dict(), *right.dict());
  }
  return left.same_object(right);
}

int order(Runtime& runtime, const Value& left, const Value& right, const char* op) {
  runtime.charge(1);
  if (left.string() != nullptr && right.string() != nullptr) {
    runtime.charge_bytes(std::min(left.string()->size(), right.string()->size()));
    return sign(left.string()->bytes().compare(right.string()->bytes()), 0);
  }
  if (left.is_number() && right.is_number()) return order_numbers(left, right);
  if (left.list() != nullptr && right.list() != nullptr && left.list()->is_tuple == right.list()->is_tuple) {
    const auto& a = left.list()->items;
    const auto& b = right.list()->items;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (!equal(runtime, a[i], b[i])) return order(runtime, a[i], b[i], op);
    }
    return sign(a.size(), b.size());
  }
  if (left.is_undefined()) fail_undefined(left);
  if (right.is_undefined()) fail_undefined(right);
  fail(std::string("'") + op + "' not supported between instances of '" + left.type_name() + "' and '" +
       right.type_name() + "'");
}

bool compare(Runtime& runtime, CompareOp op, const Value& left, const Value& right) {
  switch (op) {
    case CompareOp::kEqual: return equal(runtime, left, right);
    case CompareOp::kNotEqual: return !equal(runtime, left, right);
    case CompareOp::kLess: return order(runtime, left, right, "<") < 0;
    case CompareOp::kLessEqual: return order(runtime, left, right, "<=") <= 0;
    case CompareOp::kGreater: return order(runtime, left, right, ">") > 0;
    case CompareOp::kGreaterEqual: return order(runtime, left, right, ">=") >= 0;
    case CompareOp::kIn: return contains(runtime, right, left);
    case CompareOp::kNotIn: return !contains(runtime, right, left);
  }
  return false;
}

bool contains(Runtime& runtime, const Value& container, const Value& item) {
  if (const auto* text = container.string()) {
    if (item.is_undefined()) fail_undefined(item);
    if (item.string() == nullptr) {
      fail(std::string("'in <string>' requires string as left operand, not ") + item.type_name());
    }
    runtime.charge_bytes(text->size());
    return text->bytes().find(item.string()->bytes()) != std::string::npos;
  }
  if (const auto* dict = container.dict()) {
    if (!hash_key(item)) fail(std::string("unhashable type: '") + item.type_name() + "'");
    return dict->lookup(item) != nullptr;
  }
  if (const auto* list = container.list()) {
    return std::any_of(list->items.begin(), list->items.end(),
                       [&](const Value& candidate) { return equal(runtime, candidate, item); });
  }
  if (container.is_undefined()) return false;
  fail(std::string("argument of type '") + container.type_name() + "' is not iterable");
}

Value subscript(Runtime& runtime, const Value& object, const Value& index) {
  if (object.is_undefined()) fail_undefined(object);
  if (const auto* dict = object.dict()) {
    if (const Value* found = dict->lookup(index)) return *found;
  } else if (const auto number = index.integer()) {
    if (const auto* list = object.list()) {
      if (const auto position = position_of(*number, list->items.size())) return list->items[*position];
    } else if (const auto* text = object.string()) {
      runtime.charge_bytes(text->size());
      if (const auto position = position_of(*number, utf8_length(text->bytes()))) {
        const size_t begin = utf8_offset(text->bytes(), *position);
        return runtime.string(text->slice(begin, begin + code_point_at(text->bytes(), begin).size));
      }
    }
  }
  if (index.string() != nullptr) {
    if (auto found = attribute_of(object, index.string()->bytes())) return *std::move(found);
    return Value::undefined(describe_object(object) + " has no attribute '" + index.string()->bytes() + "'");
  }
  return Value::undefined(describe_object(object) + " has no element " + repr(runtime, index));
}

Value slice(Runtime& runtime, const Value& object, const Value& start, const Value& stop, const Value& step) {
  if (object.is_undefined()) fail_undefined(object);
  const List* list = object.list();
  if (list == nullptr && object.string() == nullptr) {
    fail(std::string("a value of type ") + object.type_name() + " cannot be sliced");
  }
  if (const auto* text = object.string()) return slice_string(runtime, *text, start, stop, step);
  std::vector<Value> items;
  visit_range(slice_range(list->items.size(), start, stop, step),
              [&](size_t i) { items.push_back(list->items[i]); });
  return runtime.list(std::move(items), list->is_tuple);
}

std::vector<Value> iterate(Runtime& runtime, const Value& value) {
  if (const auto* list = value.list()) {
    runtime.charge(1 + list->items.size());
    return list->items;
  }
  std::vector<Value> items;
  if (const auto* dict = value.dict()) {
    runtime.charge(1 + dict->size());
    for (const auto& [key, entry] : dict->entries()) items.push_back(key);
  } else if (const auto* text = value.string()) {
    for (size_t i = 0; i < text->size();) {
      const size_t size = code_point_at(text->bytes(), i).size;
      items.push_back(runtime.string(text->slice(i, i + size)));
      i += size;
    }
  } else if (!value.is_undefined()) {
    fail(std::string("'") + value.type_name() + "' object is not iterable");
  }
  return items;
}

int64_t length(Runtime& runtime, const Value& value) {
  if (value.is_undefined()) return 0;
  if (const auto* text = value.string()) {
    runtime.charge_bytes(text->size());
    return static_cast<int64_t>(utf8_length(text->bytes()));
  }
  if (const auto* list = value.list()) return static_cast<int64_t>(list->items.size());
  if (const auto* dict = value.dict()) return static_cast<int64_t>(dict->size());
  fail(std::string("object of type '") + value.type_name() + "' has no len()");
}

}  // namespace tercet::text::jinja
