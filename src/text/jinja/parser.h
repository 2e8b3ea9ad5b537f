// Parser: tokens to a syntax tree, by the grammar of Jinja 3.1 with loop controls and {% generation %}.
#pragma once

#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"

namespace tercet::text::jinja {

// Throws TemplateError. Nesting is bounded by kMaxSyntaxDepth, so that no later pass over the tree recurses
// deeper.
Body parse_template(const std::vector<Token>& tokens);

}  // namespace tercet::text::jinja
