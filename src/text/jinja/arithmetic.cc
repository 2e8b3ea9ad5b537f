#include <cmath>
#include <limits>
#include <optional>

#include "text/jinja/error.h"
#include "text/jinja/format.h"
#include "text/jinja/operators.h"

namespace tercet::text::jinja {
namespace {

const char* symbol(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd: return "+";
    case BinaryOp::kSubtract: return "-";
    case BinaryOp::kMultiply: return "*";
    case BinaryOp::kDivide: return "/";
    case BinaryOp::kFloorDivide: return "//";
    case BinaryOp::kModulo: return "%";
    case BinaryOp::kPower: return "**";
  }
  return "?";
}

[[noreturn]] void fail_types(BinaryOp op, const Value& left, const Value& right) {
  if (op == BinaryOp::kAdd && (left.string() != nullptr || left.list() != nullptr)) {
    fail(std::string("can only concatenate ") + left.type_name() + " (not \"" + right.type_name() +
         "\") to " + left.type_name());
  }
  fail(std::string("unsupported operand type(s) for ") + symbol(op) + ": '" + left.type_name() + "' and '" +
       right.type_name() + "'");
}

[[noreturn]] void fail_overflow() { fail("integer result does not fit into 64 bits"); }

int64_t negated(int64_t value) {
  if (value == std::numeric_limits<int64_t>::min()) fail_overflow();
  return -value;
}

Value integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) fail("0 cannot be raised to a negative power");
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  int64_t result = 1;
  bool overflows = false;
  while (exponent > 0 && !overflows) {
    if (exponent & 1) overflows = __builtin_mul_overflow(result, base, &result);
    exponent >>= 1;
    // The square may leave 64 bits only when it is still needed.
    if (exponent > 0) overflows = overflows || __builtin_mul_overflow(base, base, &base);
  }
  if (overflows) fail_overflow();
  return result;
}

Value integer_division(BinaryOp op, int64_t a, int64_t b) {
  if (b == 0) fail("division by zero");
  if (op == BinaryOp::kDivide) return static_cast<double>(a) / static_cast<double>(b);
  if (b == -1) return op == BinaryOp::kModulo ? int64_t{0} : negated(a);
  const int64_t remainder = a % b;
  const bool rounds_down = remainder != 0 && (remainder < 0) != (b < 0);
  if (op == BinaryOp::kModulo) return rounds_down ? remainder + b : remainder;
  return a / b - (rounds_down ? 1 : 0);
}

Value integer_arithmetic(BinaryOp op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflows = false;
  switch (op) {
    case BinaryOp::kAdd: overflows = __builtin_add_overflow(a, b, &result); break;
    case BinaryOp::kSubtract: overflows = __builtin_sub_overflow(a, b, &result); break;
    case BinaryOp::kMultiply: overflows = __builtin_mul_overflow(a, b, &result); break;
    case BinaryOp::kPower: return integer_power(a, b);
    default: return integer_division(op, a, b);
  }
  if (overflows) fail_overflow();
  return result;
}

Value float_arithmetic(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::kAdd: return a + b;
    case BinaryOp::kSubtract: return a - b;
    case BinaryOp::kMultiply: return a * b;
    case BinaryOp::kPower: return std::pow(a, b);
    default: break;
  }
  if (b == 0) fail("division by zero");
  if (op == BinaryOp::kDivide) return a / b;
  double remainder = std::fmod(a, b);
  if (remainder != 0 && (remainder < 0) != (b < 0)) remainder += b;
  if (op == BinaryOp::kModulo) return remainder == 0 ? std::copysign(0.0, b) : remainder;
  return std::floor((a - remainder) / b + 0.5);
}

Value repeat(Runtime& runtime, const Value& sequence, int64_t count) {
  const size_t times = count < 0 ? 0 : static_cast<size_t>(count);
  if (const auto* text = sequence.string()) {
    if (text->empty()) return sequence;
    if (times > std::numeric_limits<size_t>::max() / text->size()) {
      runtime.check_string_size(std::numeric_limits<size_t>::max());
    }
    runtime.check_string_size(times * text->size());
    runtime.charge(times);
    MarkedString result;
    for (size_t i = 0; i < times; ++i) result.append(*text);
    return runtime.string(std::move(result));
  }
  const List& list = *sequence.list();
  std::vector<Value> items;
  for (size_t i = 0; i < times && !list.items.empty(); ++i) {
    runtime.charge(kStepsPerElement * list.items.size());
    items.insert(items.end(), list.items.begin(), list.items.end());
  }
  return runtime.list(std::move(items), list.is_tuple);
}

std::optional<Value> sequence_arithmetic(Runtime& runtime, BinaryOp op, const Value& left,
                                         const Value& right) {
  if (op == BinaryOp::kModulo && left.string() != nullptr)
    return format_percent(runtime, *left.string(), right);
  if (op == BinaryOp::kMultiply) {
    const bool left_is_sequence = left.string() != nullptr || left.list() != nullptr;
    const bool right_is_sequence = right.string() != nullptr || right.list() != nullptr;
    if (left_is_sequence && right.integer()) return repeat(runtime, left, *right.integer());
    if (right_is_sequence && left.integer()) return repeat(runtime, right, *left.integer());
  }
  if (op != BinaryOp::kAdd) return std::nullopt;
  if (left.string() != nullptr && right.string() != nullptr) {
    runtime.check_string_size(left.string()->size() + right.string()->size());
    MarkedString result = *left.string();
    result.append(*right.shared_string());
    return runtime.string(std::move(result));
  }
  if (left.list() != nullptr && right.list() != nullptr && left.list()->is_tuple == right.list()->is_tuple) {
    runtime.charge(left.list()->items.size() + right.list()->items.size());
    std::vector<Value> items = left.list()->items;
    items.insert(items.end(), right.list()->items.begin(), right.list()->items.end());
    return runtime.list(std::move(items), left.list()->is_tuple);
  }
  return std::nullopt;
}

}  // namespace

Value apply_binary(Runtime& runtime, BinaryOp op, const Value& left, const Value& right) {
  if (left.is_undefined()) fail_undefined(left);
  if (right.is_undefined() && !(op == BinaryOp::kModulo && left.string() != nullptr)) fail_undefined(right);
  if (left.integer() && right.integer()) return integer_arithmetic(op, *left.integer(), *right.integer());
  if (left.is_number() && right.is_number()) {
    if (left.get_if<BigInt>() != nullptr || right.get_if<BigInt>() != nullptr) {
      fail("arithmetic with an integer that does not fit into 64 bits");
    }
    return float_arithmetic(op, *left.number(), *right.number());
  }
  if (auto result = sequence_arithmetic(runtime, op, left, right)) return *std::move(result);
  fail_types(op, left, right);
}

Value negate(const Value& value) {
  if (value.is_undefined()) fail_undefined(value);
  if (const auto integer = value.integer()) return negated(*integer);
  if (const auto* big = value.get_if<BigInt>()) {
    const bool is_negative = big->digits->front() == '-';
    return BigInt{
        std::make_shared<const std::string>(is_negative ? big->digits->substr(1) : "-" + *big->digits)};
  }
  if (const auto number = value.number()) return -*number;
  fail(std::string("bad operand type for unary -: '") + value.type_name() + "'");
}

}  // namespace tercet::text::jinja
