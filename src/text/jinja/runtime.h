// Runtime: what one render may still use, and what it has to clean up. Every function that computes with
// values takes it, charges its work to it, and makes strings, lists and dicts through it.
//
// One per render, one thread. Functions throw TemplateError (error.h).
#pragma once

#include <cstddef>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "text/jinja/limits.h"
#include "text/jinja/value.h"

namespace tercet::text::jinja {

// Variables by name; a lookup goes on in the parent. Macros keep the scope that they were defined in.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::map<std::string, Value, std::less<>> variables;

  const Value* find(std::string_view name) const;
};

class Runtime {
 public:
  Runtime(const Limits& limits, const std::tm& now)
      : limits_(limits), now_(now), steps_left_(limits.max_steps) {}
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const std::tm& now() const { return now_; }

  void charge(size_t steps) {
    if (steps > steps_left_) out_of_steps();
    steps_left_ -= steps;
  }
  void charge_bytes(size_t bytes) { charge(1 + bytes / kBytesPerStep); }
  // Errors when a string of this size would be too long.
  void check_string_size(size_t bytes) const;

  Value string(MarkedString text);
  Value string(std::string text, Origin origin) { return string(MarkedString(std::move(text), origin)); }
  Value list(std::vector<Value> items, bool is_tuple = false);
  Value dict(Dict value);
  std::shared_ptr<Namespace> make_namespace();
  // Keeps the scope of a macro until the end, when the cycle macro -> scope -> macro is cut.
  void keep(const std::shared_ptr<Scope>& scope) { scopes_.push_back(scope); }

  // Counts a nested evaluation while it lives.
  class Nested {
   public:
    explicit Nested(Runtime& runtime) : runtime_(runtime) {
      runtime_.charge(1);
      if (++runtime_.depth_ > runtime_.limits_.max_depth) {
        --runtime_.depth_;
        runtime_.too_deep();
      }
    }
    ~Nested() { --runtime_.depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    Runtime& runtime_;
  };

 private:
  [[noreturn]] void out_of_steps() const;
  [[noreturn]] void too_deep() const;

  const Limits limits_;
  const std::tm now_;
  size_t steps_left_;
  size_t depth_ = 0;
  std::vector<std::shared_ptr<Namespace>> namespaces_;
  std::vector<std::shared_ptr<Scope>> scopes_;
};

}  // namespace tercet::text::jinja
