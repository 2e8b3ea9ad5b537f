// Result<T>: a value or an Error, returned by value. No exception crosses a folder; whatever can fail for a
// reason outside the program (a file, a prompt, a peer, memory) returns one of these. Programming errors use
// TERCET_CHECK.
//
// Thread-safe as any value is.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace tercet {

enum class ErrorCode {
  kInvalidArgument,  // a flag, a request or a file says something impossible
  kNotFound,
  kUnsupported,  // understood, and not built (yet)
  kCorrupt,      // bytes that break their format
  kExhausted,    // memory, blocks, disk, time
  kCancelled,
  kIo,
  kInternal,
};

const char* error_code_name(ErrorCode code);

// `message` says what was found, what was expected and what to do. `where` names the file, tensor, key or
// field.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::string where;

  // "where: message", or the message alone.
  std::string to_string() const;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return require(), std::get<0>(state_); }
  const T& value() const& { return require(), std::get<0>(state_); }
  T&& value() && { return require(), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& { return TERCET_CHECK(!ok()), std::get<1>(state_); }
  Error&& error() && { return TERCET_CHECK(!ok()), std::get<1>(std::move(state_)); }

 private:
  void require() const {
    if (!ok()) check_failed("Result holds a value", __FILE__, __LINE__, std::get<1>(state_).to_string());
  }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const& { return TERCET_CHECK(!ok()), *error_; }
  Error&& error() && { return TERCET_CHECK(!ok()), *std::move(error_); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace tercet

#define TERCET_CONCAT_(a, b) a##b
#define TERCET_CONCAT(a, b) TERCET_CONCAT_(a, b)

// TERCET_TRY(expr): return the error of a Status or Result out of the enclosing function.
#define TERCET_TRY(expr) \
  if (auto tercet_status = (expr); !tercet_status.ok()) return std::move(tercet_status).error()

// TERCET_ASSIGN(auto x, expr): x = value of expr, or return its error.
#define TERCET_ASSIGN(lhs, expr) TERCET_ASSIGN_(TERCET_CONCAT(tercet_result_, __LINE__), lhs, expr)
#define TERCET_ASSIGN_(result, lhs, expr)             \
  auto result = (expr);                               \
  if (!result.ok()) return std::move(result).error(); \
  lhs = *std::move(result)
