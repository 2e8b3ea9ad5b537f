// Expressions: Jinja's grammar, with its precedences (** binds to the left, and a sign binds tighter than
// it).
#pragma once

#include "text/jinja/ast.h"
#include "text/jinja/token_stream.h"

namespace tercet::text::jinja {

ExprPtr parse_expression(TokenStream& tokens);
// An expression without a trailing "x if y else z": the iterable of a {% for %}.
ExprPtr parse_plain_expression(TokenStream& tokens);
// Expressions with commas between them make a tuple; a single one is itself.
ExprPtr parse_tuple(TokenStream& tokens);
ExprPtr parse_plain_tuple(TokenStream& tokens);
// A primary expression with its attributes, subscripts and calls, as after {% call %}.
ExprPtr parse_operand(TokenStream& tokens);
// "name(...)|name(...)", with the first filter's input null; null where there is no filter.
ExprPtr parse_block_filters(TokenStream& tokens);

}  // namespace tercet::text::jinja
