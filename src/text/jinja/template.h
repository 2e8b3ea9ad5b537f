// Template: one parsed Jinja template.
//
// Immutable after parse(): any number of threads may render it at once. Follows Jinja 3.1 in the environment
// that Hugging Face's transformers gives to chat templates: ImmutableSandboxedEnvironment with trim_blocks,
// lstrip_blocks, loop controls and {% generation %}, no auto-escaping.
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/jinja/limits.h"
#include "text/jinja/value.h"

namespace tercet::text::jinja {

struct SyntaxTree;

class Template {
 public:
  // Errors name line and column: syntax, an unsupported tag (kUnsupported), a limit (kExhausted).
  static Result<Template> parse(std::string_view source, const Limits& limits = {});

  // The output with these variables. `now` is what strftime_now() shows. Errors name line and column; one
  // that the template raised with raise_exception() has the template's own words.
  Result<MarkedString> render(const std::vector<std::pair<std::string, Value>>& variables,
                              const std::tm& now) const;

 private:
  Template(std::shared_ptr<const SyntaxTree> tree, const Limits& limits)
      : tree_(std::move(tree)), limits_(limits) {}
  std::shared_ptr<const SyntaxTree> tree_;
  Limits limits_;
};

}  // namespace tercet::text::jinja
