#include "text/jinja/parser.h"

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "text/jinja/expression_parser.h"
#include "text/jinja/token_stream.h"

namespace tercet::text::jinja {
namespace {

class TemplateParser {
 public:
  explicit TemplateParser(const std::vector<Token>& tokens) : tokens_(tokens) {}

  Body run() {
    Body body = statements({});
    if (!tokens_.is(Token::Type::kEnd)) tokens_.unexpected("the end of the template");
    return body;
  }

 private:
  using Names = std::initializer_list<std::string_view>;

  // Statements up to the template's end or a tag with one of the names, whose "{%" is consumed and whose name
  // is next.
  Body statements(Names ends) {
    const TokenStream::Nested nested(tokens_);
    Body body;
    while (!tokens_.is(Token::Type::kEnd)) {
      const Token& token = tokens_.next();
      if (token.type == Token::Type::kData) {
        body.push_back({token.offset, Data{Value::template_string(token.text)}});
      } else if (token.type == Token::Type::kPrintBegin) {
        body.push_back({token.offset, Print{parse_tuple(tokens_)}});
        tokens_.expect(Token::Type::kPrintEnd, "'}}'");
      } else {
        if (!tokens_.is(Token::Type::kName)) tokens_.unexpected("the name of a tag");
        if (std::find(ends.begin(), ends.end(), tokens_.peek().text) != ends.end()) return body;
        if (auto parsed = statement()) body.push_back(*std::move(parsed));
      }
    }
    if (ends.size() != 0) tokens_.unexpected("{% " + std::string(*(ends.end() - 1)) + " %}");
    return body;
  }

  void end_tag() { tokens_.expect(Token::Type::kBlockEnd, "'%}'"); }

  // The rest of this tag, the statements up to the tag `end`, and that tag.
  Body block(std::string_view end) {
    end_tag();
    Body body = statements({end});
    tokens_.next();
    if (end == "endmacro" && tokens_.is(Token::Type::kName)) tokens_.next();
    end_tag();
    return body;
  }

  std::optional<Statement> statement() {
    const Token& name = tokens_.next();
    const uint32_t offset = name.offset;
    const std::string& tag = name.text;
    if (tag == "if") return Statement{offset, if_statement()};
    if (tag == "for") return Statement{offset, for_statement()};
    if (tag == "set") return set_statement(offset);
    if (tag == "macro") return Statement{offset, macro()};
    if (tag == "call") return Statement{offset, call_block()};
    if (tag == "filter") return Statement{offset, filter_block()};
    if (tag == "with") return Statement{offset, with_block()};
    if (tag == "generation") return Statement{offset, With{{}, block("endgeneration")}};
    if (tag == "break" || tag == "continue") return Statement{offset, loop_control(name)};
    static constexpr std::string_view kUnsupported[] = {"include", "import",     "from",  "extends",
                                                        "block",   "autoescape", "trans", "do"};
    if (std::find(std::begin(kUnsupported), std::end(kUnsupported), tag) != std::end(kUnsupported)) {
      fail_syntax(offset, "{% " + tag + " %} is not supported in chat templates", ErrorCode::kUnsupported);
    }
    fail_syntax(offset, "unknown tag '" + tag + "'");
  }

  If if_statement() {
    If result;
    while (true) {
      ExprPtr test = parse_expression(tokens_);
      end_tag();
      result.branches.emplace_back(std::move(test), statements({"elif", "else", "endif"}));
      if (!tokens_.take_name("elif")) break;
    }
    if (tokens_.take_name("else")) {
      end_tag();
      result.otherwise = statements({"endif"});
    }
    tokens_.expect_name("endif");
    end_tag();
    return result;
  }

  For for_statement() {
    For result;
    result.target = tuple_target();
    tokens_.expect_name("in");
    result.iterable = parse_plain_tuple(tokens_);
    if (tokens_.take_name("if")) result.filter = parse_expression(tokens_);
    result.is_recursive = tokens_.take_name("recursive");
    end_tag();
    ++loops_;
    result.body = statements({"else", "endfor"});
    --loops_;
    if (tokens_.take_name("else")) {
      end_tag();
      result.otherwise = statements({"endfor"});
    }
    tokens_.expect_name("endfor");
    end_tag();
    return result;
  }

  // A name, or a name with an attribute, or a tuple in parentheses.
  Target target() {
    const TokenStream::Nested nested(tokens_);
    Target result;
    if (tokens_.take_operator("(")) {
      result = tuple_target();
      tokens_.expect_operator(")");
      return result;
    }
    const uint32_t offset = tokens_.offset();
    result.name = tokens_.expect_identifier();
    static constexpr std::string_view kReserved[] = {"true", "false", "none", "True", "False", "None"};
    if (std::find(std::begin(kReserved), std::end(kReserved), result.name) != std::end(kReserved)) {
      fail_syntax(offset, "cannot assign to '" + result.name + "'");
    }
    if (tokens_.take_operator(".")) result.attribute = tokens_.expect_identifier();
    return result;
  }

  Target tuple_target() {
    Target first = target();
    if (!tokens_.is_operator(",")) return first;
    Target tuple;
    tuple.items.push_back(std::move(first));
    while (tokens_.take_operator(",")) {
      if (!tokens_.is(Token::Type::kName) && !tokens_.is_operator("(")) break;
      if (tokens_.is_name("in")) break;
      tuple.items.push_back(target());
    }
    return tuple;
  }

  Statement set_statement(uint32_t offset) {
    Target target = tuple_target();
    if (tokens_.take_operator("=")) {
      ExprPtr value = parse_tuple(tokens_);
      end_tag();
      return {offset, Set{std::move(target), std::move(value)}};
    }
    ExprPtr filter = tokens_.take_operator("|") ? parse_block_filters(tokens_) : nullptr;
    Body body = outside_loops([&] { return block("endset"); });
    return {offset, SetBlock{std::move(target), std::move(filter), std::move(body)}};
  }

  std::vector<Parameter> parameters() {
    std::vector<Parameter> result;
    tokens_.expect_operator("(");
    while (!tokens_.is_operator(")")) {
      Parameter parameter{tokens_.expect_identifier(), nullptr};
      const uint32_t offset = tokens_.offset();
      if (tokens_.take_operator("=")) {
        parameter.default_value = parse_expression(tokens_);
      } else if (!result.empty() && result.back().default_value) {
        fail_syntax(offset, "a parameter without a default follows one with a default");
      }
      result.push_back(std::move(parameter));
      if (!tokens_.take_operator(",")) break;
    }
    tokens_.expect_operator(")");
    return result;
  }

  Macro macro() {
    Macro result;
    const size_t begin = tokens_.position();
    result.name = tokens_.expect_identifier();
    result.parameters = parameters();
    result.body = outside_loops([&] { return block("endmacro"); });
    result.takes_varargs = tokens_.has_name_since(begin, "varargs");
    result.takes_kwargs = tokens_.has_name_since(begin, "kwargs");
    return result;
  }

  CallBlock call_block() {
    CallBlock result;
    const size_t begin = tokens_.position();
    result.caller.name = "caller";
    if (tokens_.is_operator("(")) result.caller.parameters = parameters();
    const uint32_t offset = tokens_.offset();
    result.call = parse_operand(tokens_);
    if (!std::holds_alternative<Call>(result.call->node))
      fail_syntax(offset, "expected a call after {% call %}");
    result.caller.body = outside_loops([&] { return block("endcall"); });
    result.caller.takes_varargs = tokens_.has_name_since(begin, "varargs");
    result.caller.takes_kwargs = tokens_.has_name_since(begin, "kwargs");
    return result;
  }

  FilterBlock filter_block() {
    ExprPtr filter = parse_block_filters(tokens_);
    return {std::move(filter), outside_loops([&] { return block("endfilter"); })};
  }

  With with_block() {
    With result;
    while (!tokens_.is(Token::Type::kBlockEnd)) {
      if (!result.assignments.empty()) tokens_.expect_operator(",");
      Target name = target();
      tokens_.expect_operator("=");
      result.assignments.emplace_back(std::move(name), parse_expression(tokens_));
    }
    result.body = block("endwith");
    return result;
  }

  LoopControl loop_control(const Token& name) {
    if (loops_ == 0) fail_syntax(name.offset, "'" + name.text + "' outside of a loop");
    end_tag();
    return {name.text == "break"};
  }

  // A body that a loop around it cannot be left from.
  Body outside_loops(auto parse) {
    const size_t loops = std::exchange(loops_, 0);
    Body body = parse();
    loops_ = loops;
    return body;
  }

  TokenStream tokens_;
  size_t loops_ = 0;
};

}  // namespace

Body parse_template(const std::vector<Token>& tokens) { return TemplateParser(tokens).run(); }

}  // namespace tercet::text::jinja
