#include "text/jinja/template.h"

#include <algorithm>

#include "text/jinja/ast.h"
#include "text/jinja/error.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/lexer.h"
#include "text/jinja/parser.h"
#include "text/jinja/runtime.h"
#include "text/jinja/utf8.h"

namespace tercet::text::jinja {

struct SyntaxTree {
  std::string source;  // normalized
  Body body;
};

namespace {

// "template line 3, column 14": both from 1, columns in characters.
Error located_error(TemplateError error, std::string_view source, size_t offset) {
  const std::string_view before = source.substr(0, std::min(offset, source.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  const size_t column = utf8_length(before.substr(line_begin)) + 1;
  return {error.code, std::move(error.message),
          "template line " + std::to_string(line) + ", column " + std::to_string(column)};
}

}  // namespace

Result<Template> Template::parse(std::string_view source, const Limits& limits) {
  if (source.size() > limits.max_source_bytes) {
    return Error{ErrorCode::kExhausted,
                 "the template has " + std::to_string(source.size()) + " bytes, more than the limit of " +
                     std::to_string(limits.max_source_bytes),
                 "template"};
  }
  auto tree = std::make_shared<SyntaxTree>();
  tree->source = normalize_source(source);
  try {
    tree->body = parse_template(tokenize(tree->source));
  } catch (TemplateError& error) {
    const size_t offset = error.offset;
    return located_error(std::move(error), tree->source, offset);
  }
  return Template(std::move(tree), limits);
}

Result<MarkedString> Template::render(const std::vector<std::pair<std::string, Value>>& variables,
                                      const std::tm& now) const {
  Runtime runtime(limits_, now);
  Interpreter interpreter(runtime);
  const auto scope = std::make_shared<Scope>();
  for (const auto& [name, value] : variables) scope->variables[name] = value;
  try {
    return interpreter.run(tree_->body, scope);
  } catch (TemplateError& error) {
    const size_t offset = error.offset == kUnknownOffset ? interpreter.position() : error.offset;
    return located_error(std::move(error), tree_->source, offset);
  }
}

}  // namespace tercet::text::jinja
