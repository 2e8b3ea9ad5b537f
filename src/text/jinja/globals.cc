// Global functions.
#include <utility>

#include "text/jinja/arguments.h"
#include "text/jinja/builtins.h"
#include "text/jinja/error.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/strftime.h"

namespace tercet::text::jinja {
namespace {

using Function = Value (*)(Runtime&, const Arguments&);

Value range(Runtime& runtime, const Arguments& arguments) {
  const BoundArguments args(arguments, "range", {"start", "stop", "step"}, 1);
  const int64_t start = args.has(1) ? args.integer(0, 0) : 0;
  const int64_t stop = args.has(1) ? args.integer(1, 0) : args.integer(0, 0);
  const int64_t step = args.integer(2, 1);
  if (step == 0) fail("range() arg 3 must not be zero");
  std::vector<Value> items;
  for (__int128 i = start; step > 0 ? i < stop : i > stop; i += step) {
    if (items.size() == kMaxRange) {
      fail("range() has more than " + std::to_string(kMaxRange) + " elements", ErrorCode::kExhausted);
    }
    items.push_back(static_cast<int64_t>(i));
  }
  return runtime.list(std::move(items));
}

// Adds a mapping's entries, or an iterable's pairs.
void add_entries(Runtime& runtime, Dict& dict, const Value& source) {
  const auto add = [&](const Value& key, const Value& value) {
    if (!dict.insert(key, value)) fail(std::string("unhashable type: '") + key.type_name() + "'");
  };
  if (const auto* other = source.dict()) {
    runtime.charge(other->size());
    for (const auto& [key, value] : other->entries()) add(key, value);
    return;
  }
  for (const Value& item : iterate(runtime, source)) {
    const auto pair = iterate(runtime, item);
    if (pair.size() != 2) fail("dict(): expected pairs");
    add(pair[0], pair[1]);
  }
}

Value dict(Runtime& runtime, const Arguments& arguments) {
  if (arguments.positional.size() > 1) fail("dict() takes at most one positional argument");
  Dict result;
  if (!arguments.positional.empty()) add_entries(runtime, result, arguments.positional[0]);
  for (const auto& [name, value] : arguments.named) result.insert(Value::template_string(name), value);
  return runtime.dict(std::move(result));
}

Value make_namespace(Runtime& runtime, const Arguments& arguments) {
  const Value initial = dict(runtime, arguments);
  auto result = runtime.make_namespace();
  for (const auto& [key, value] : initial.dict()->entries()) {
    if (key.string() == nullptr) fail("namespace(): names must be strings");
    result->variables[key.string()->bytes()] = value;
  }
  return result;
}

// Its items in turn, by next(); `current` is the one that next() gives next.
Value cycler(Runtime& runtime, const Arguments& arguments) {
  if (arguments.positional.empty()) fail("at least one item has to be provided");
  auto result = runtime.make_namespace();
  Namespace* self = result.get();  // the runtime keeps it until the end
  const auto items = std::make_shared<const std::vector<Value>>(arguments.positional);
  const auto position = std::make_shared<size_t>(0);
  self->variables["current"] = items->front();
  self->variables["next"] = Callable{"next", [self, items, position](Runtime&, const Arguments&) {
                                       const Value current = (*items)[*position];
                                       *position = (*position + 1) % items->size();
                                       self->variables["current"] = (*items)[*position];
                                       return current;
                                     }};
  self->variables["reset"] = Callable{"reset", [self, items, position](Runtime&, const Arguments&) {
                                        *position = 0;
                                        self->variables["current"] = items->front();
                                        return Value(None{});
                                      }};
  return result;
}

// Nothing on its first call, the separator on all others.
Value joiner(Runtime& runtime, const Arguments& arguments) {
  const BoundArguments args(arguments, "joiner", {"sep"}, 0);
  const Value separator = args.has(0) ? args[0] : runtime.string(", ", Origin::kTemplate);
  const auto was_used = std::make_shared<bool>(false);
  return Callable{"joiner", [separator, was_used](Runtime& now, const Arguments&) {
                    return std::exchange(*was_used, true) ? separator : now.string(MarkedString());
                  }};
}

Value raise_exception(Runtime& runtime, const Arguments& arguments) {
  const BoundArguments args(arguments, "raise_exception", {"message"}, 1);
  fail(to_text(runtime, args[0]).bytes());
}

Value strftime_now(Runtime& runtime, const Arguments& arguments) {
  const BoundArguments args(arguments, "strftime_now", {"format"}, 1);
  if (args[0].string() == nullptr) fail("strftime_now(): the format must be a string");
  const std::string& format = args[0].string()->bytes();
  runtime.charge(format.size());
  return runtime.string(format_time(format, runtime.now()), Origin::kTemplate);
}

constexpr std::pair<std::string_view, Function> kGlobals[] = {
    {"cycler", cycler},
    {"dict", dict},
    {"joiner", joiner},
    {"namespace", make_namespace},
    {"raise_exception", raise_exception},
    {"range", range},
    {"strftime_now", strftime_now},
};

}  // namespace

std::optional<Value> find_global(std::string_view name) {
  for (const auto& [global_name, function] : kGlobals) {
    if (global_name == name) return Callable{std::string(name), function};
  }
  return std::nullopt;
}

}  // namespace tercet::text::jinja
