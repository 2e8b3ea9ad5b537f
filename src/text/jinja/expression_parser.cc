#include "text/jinja/expression_parser.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>

namespace tercet::text::jinja {
namespace {

uint32_t depth_of(const ExprPtr& expr) { return expr ? expr->depth : 0; }

uint32_t depth_of(const CallArguments& arguments) {
  uint32_t depth = std::max(depth_of(arguments.star), depth_of(arguments.double_star));
  for (const auto& value : arguments.positional) depth = std::max(depth, depth_of(value));
  for (const auto& [name, value] : arguments.named) depth = std::max(depth, depth_of(value));
  return depth;
}

// `child_depth` is that of the deepest child. Chains such as a + b + c nest without the parser recursing, so
// depth is checked here too.
ExprPtr make(uint32_t offset, uint32_t child_depth, decltype(Expr::node) node) {
  if (child_depth >= kMaxSyntaxDepth) {
    fail_syntax(offset, "this expression nests more than " + std::to_string(kMaxSyntaxDepth) + " levels deep",
                ErrorCode::kExhausted);
  }
  return std::make_unique<const Expr>(Expr{offset, child_depth + 1, std::move(node)});
}

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  ExprPtr expression() {
    const TokenStream::Nested nested(tokens_);
    ExprPtr value = logical_or();
    while (tokens_.is_name("if")) {
      const uint32_t offset = tokens_.next().offset;
      ExprPtr test = logical_or();
      ExprPtr otherwise = tokens_.take_name("else") ? expression() : nullptr;
      const uint32_t depth = std::max({depth_of(value), depth_of(test), depth_of(otherwise)});
      value = make(offset, depth, Conditional{std::move(test), std::move(value), std::move(otherwise)});
    }
    return value;
  }

  ExprPtr logical_or() {
    ExprPtr left = logical_and();
    while (tokens_.is_name("or")) {
      const uint32_t offset = tokens_.next().offset;
      left = logical(offset, false, std::move(left), logical_and());
    }
    return left;
  }

  ExprPtr operand() {
    ExprPtr value = primary();
    return postfix(std::move(value));
  }

  ExprPtr tuple(bool plain) {
    const uint32_t offset = tokens_.offset();
    const auto item = [&] { return plain ? logical_or() : expression(); };
    ExprPtr first = item();
    if (!tokens_.is_operator(",")) return first;
    std::vector<ExprPtr> items;
    items.push_back(std::move(first));
    while (tokens_.take_operator(",") && !ends_tuple()) items.push_back(item());
    return display(offset, std::move(items), true);
  }

  ExprPtr filters(ExprPtr input) {
    const uint32_t offset = tokens_.offset();
    std::string name = dotted_name();
    CallArguments arguments;
    if (tokens_.is_operator("(")) arguments = call_arguments();
    const uint32_t depth = std::max(depth_of(input), depth_of(arguments));
    return make(offset, depth, Filter{std::move(input), std::move(name), std::move(arguments)});
  }

 private:
  static ExprPtr logical(uint32_t offset, bool is_and, ExprPtr left, ExprPtr right) {
    const uint32_t depth = std::max(depth_of(left), depth_of(right));
    return make(offset, depth, Logical{is_and, std::move(left), std::move(right)});
  }

  static ExprPtr binary(uint32_t offset, BinaryOp op, ExprPtr left, ExprPtr right) {
    const uint32_t depth = std::max(depth_of(left), depth_of(right));
    return make(offset, depth, Binary{op, std::move(left), std::move(right)});
  }

  static ExprPtr unary(uint32_t offset, UnaryOp op, ExprPtr operand) {
    const uint32_t depth = depth_of(operand);
    return make(offset, depth, Unary{op, std::move(operand)});
  }

  static ExprPtr display(uint32_t offset, std::vector<ExprPtr> items, bool is_tuple) {
    uint32_t depth = 0;
    for (const auto& item : items) depth = std::max(depth, depth_of(item));
    return make(offset, depth, ListDisplay{std::move(items), is_tuple});
  }

  bool ends_tuple() const {
    return tokens_.is(Token::Type::kBlockEnd) || tokens_.is(Token::Type::kPrintEnd) ||
           tokens_.is_operator(")");
  }

  ExprPtr logical_and() {
    ExprPtr left = logical_not();
    while (tokens_.is_name("and")) {
      const uint32_t offset = tokens_.next().offset;
      left = logical(offset, true, std::move(left), logical_not());
    }
    return left;
  }

  ExprPtr logical_not() {
    if (!tokens_.is_name("not")) return comparison();
    const TokenStream::Nested nested(tokens_);
    const uint32_t offset = tokens_.next().offset;
    return unary(offset, UnaryOp::kNot, logical_not());
  }

  std::optional<CompareOp> take_compare_op() {
    static constexpr std::pair<std::string_view, CompareOp> kOps[] = {
        {"==", CompareOp::kEqual},     {"!=", CompareOp::kNotEqual}, {"<", CompareOp::kLess},
        {"<=", CompareOp::kLessEqual}, {">", CompareOp::kGreater},   {">=", CompareOp::kGreaterEqual}};
    for (const auto& [text, op] : kOps) {
      if (tokens_.take_operator(text)) return op;
    }
    if (tokens_.take_name("in")) return CompareOp::kIn;
    if (tokens_.is_name("not") && tokens_.peek(1).type == Token::Type::kName &&
        tokens_.peek(1).text == "in") {
      tokens_.next();
      tokens_.next();
      return CompareOp::kNotIn;
    }
    return std::nullopt;
  }

  ExprPtr comparison() {
    ExprPtr first = sum();
    const uint32_t offset = tokens_.offset();
    uint32_t depth = depth_of(first);
    std::vector<std::pair<CompareOp, ExprPtr>> rest;
    while (const auto op = take_compare_op()) {
      rest.emplace_back(*op, sum());
      depth = std::max(depth, depth_of(rest.back().second));
    }
    if (rest.empty()) return first;
    return make(offset, depth, Comparison{std::move(first), std::move(rest)});
  }

  ExprPtr sum() {
    ExprPtr left = concat();
    while (tokens_.is_operator("+") || tokens_.is_operator("-")) {
      const Token& token = tokens_.next();
      const BinaryOp op = token.text == "+" ? BinaryOp::kAdd : BinaryOp::kSubtract;
      left = binary(token.offset, op, std::move(left), concat());
    }
    return left;
  }

  ExprPtr concat() {
    ExprPtr first = product();
    if (!tokens_.is_operator("~")) return first;
    const uint32_t offset = tokens_.offset();
    uint32_t depth = depth_of(first);
    std::vector<ExprPtr> parts;
    parts.push_back(std::move(first));
    while (tokens_.take_operator("~")) {
      parts.push_back(product());
      depth = std::max(depth, depth_of(parts.back()));
    }
    return make(offset, depth, Concat{std::move(parts)});
  }

  ExprPtr product() {
    static constexpr std::pair<std::string_view, BinaryOp> kOps[] = {{"*", BinaryOp::kMultiply},
                                                                     {"/", BinaryOp::kDivide},
                                                                     {"//", BinaryOp::kFloorDivide},
                                                                     {"%", BinaryOp::kModulo}};
    ExprPtr left = power();
    while (true) {
      const auto op = std::find_if(std::begin(kOps), std::end(kOps),
                                   [&](const auto& entry) { return tokens_.is_operator(entry.first); });
      if (op == std::end(kOps)) return left;
      const uint32_t offset = tokens_.next().offset;
      left = binary(offset, op->second, std::move(left), power());
    }
  }

  ExprPtr power() {
    ExprPtr left = signed_operand(true);
    while (tokens_.is_operator("**")) {
      const uint32_t offset = tokens_.next().offset;
      left = binary(offset, BinaryOp::kPower, std::move(left), signed_operand(true));
    }
    return left;
  }

  ExprPtr signed_operand(bool with_filters) {
    ExprPtr value;
    if (tokens_.is_operator("-") || tokens_.is_operator("+")) {
      const TokenStream::Nested nested(tokens_);
      const Token& token = tokens_.next();
      const UnaryOp op = token.text == "-" ? UnaryOp::kNegate : UnaryOp::kPlus;
      value = unary(token.offset, op, signed_operand(false));
    } else {
      value = primary();
    }
    value = postfix(std::move(value));
    return with_filters ? filters_and_tests(std::move(value)) : std::move(value);
  }

  ExprPtr primary() {
    const Token& token = tokens_.peek();
    switch (token.type) {
      case Token::Type::kName: tokens_.next(); return name(token);
      case Token::Type::kString: return string();
      case Token::Type::kInteger: tokens_.next(); return make(token.offset, 0, Constant{integer(token)});
      case Token::Type::kFloat:
        tokens_.next();
        return make(token.offset, 0, Constant{Value(std::strtod(token.text.c_str(), nullptr))});
      case Token::Type::kOperator: break;
      default: tokens_.unexpected("an expression");
    }
    if (token.text == "(") return parenthesis();
    if (token.text == "[") return list();
    if (token.text == "{") return dict();
    tokens_.unexpected("an expression");
  }

  static ExprPtr name(const Token& token) {
    const std::string& text = token.text;
    if (text == "true" || text == "True") return make(token.offset, 0, Constant{Value(true)});
    if (text == "false" || text == "False") return make(token.offset, 0, Constant{Value(false)});
    if (text == "none" || text == "None") return make(token.offset, 0, Constant{Value(None{})});
    return make(token.offset, 0, Name{text});
  }

  // Strings side by side are one string.
  ExprPtr string() {
    const uint32_t offset = tokens_.offset();
    std::string text;
    while (tokens_.is(Token::Type::kString)) text += tokens_.next().text;
    return make(offset, 0, Constant{Value::template_string(text)});
  }

  static Value integer(const Token& token) {
    const std::string& text = token.text;
    const char prefix = text.size() > 1 ? static_cast<char>(text[1] | 0x20) : '\0';
    const int base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 10;
    const char* begin = text.data() + (base == 10 ? 0 : 2);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value, base);
    if (error == std::errc()) return value;
    if (base != 10) fail_syntax(token.offset, "this number does not fit into 64 bits");
    const size_t zeros = std::min(text.find_first_not_of('0'), text.size() - 1);
    return BigInt{std::make_shared<const std::string>(text.substr(zeros))};
  }

  ExprPtr parenthesis() {
    const uint32_t offset = tokens_.next().offset;
    if (tokens_.take_operator(")")) return display(offset, {}, true);
    ExprPtr value = tuple(false);
    tokens_.expect_operator(")");
    return value;
  }

  ExprPtr list() {
    const uint32_t offset = tokens_.next().offset;
    std::vector<ExprPtr> items;
    while (!tokens_.is_operator("]")) {
      items.push_back(expression());
      if (!tokens_.take_operator(",")) break;
    }
    tokens_.expect_operator("]");
    return display(offset, std::move(items), false);
  }

  ExprPtr dict() {
    const uint32_t offset = tokens_.next().offset;
    uint32_t depth = 0;
    DictDisplay display;
    while (!tokens_.is_operator("}")) {
      ExprPtr key = expression();
      tokens_.expect_operator(":");
      ExprPtr value = expression();
      depth = std::max({depth, depth_of(key), depth_of(value)});
      display.entries.emplace_back(std::move(key), std::move(value));
      if (!tokens_.take_operator(",")) break;
    }
    tokens_.expect_operator("}");
    return make(offset, depth, std::move(display));
  }

  ExprPtr postfix(ExprPtr value) {
    while (true) {
      if (tokens_.is_operator(".")) {
        value = attribute(std::move(value));
      } else if (tokens_.is_operator("[")) {
        value = subscript(std::move(value));
      } else if (tokens_.is_operator("(")) {
        value = call(std::move(value));
      } else {
        return value;
      }
    }
  }

  ExprPtr filters_and_tests(ExprPtr value) {
    while (true) {
      if (tokens_.take_operator("|")) {
        value = filters(std::move(value));
      } else if (tokens_.take_name("is")) {
        value = test(std::move(value));
      } else if (tokens_.is_operator("(")) {
        value = call(std::move(value));
      } else {
        return value;
      }
    }
  }

  ExprPtr attribute(ExprPtr object) {
    const uint32_t offset = tokens_.next().offset;
    const uint32_t depth = depth_of(object);
    if (tokens_.is(Token::Type::kInteger)) {
      const Token& token = tokens_.next();
      return make(offset, depth,
                  Subscript{std::move(object), make(token.offset, 0, Constant{integer(token)})});
    }
    return make(offset, depth, Attribute{std::move(object), tokens_.expect_identifier()});
  }

  ExprPtr subscript(ExprPtr object) {
    const uint32_t offset = tokens_.next().offset;
    ExprPtr parts[3];
    size_t count = 0;
    bool is_slice = false;
    while (!tokens_.is_operator("]")) {
      if (tokens_.take_operator(":")) {
        is_slice = true;
        if (++count == 3) tokens_.unexpected("']'");
      } else {
        if (parts[count]) tokens_.unexpected("']'");
        parts[count] = is_slice ? expression() : tuple(false);
      }
    }
    tokens_.next();
    uint32_t depth = depth_of(object);
    for (const auto& part : parts) depth = std::max(depth, depth_of(part));
    if (is_slice) {
      return make(offset, depth,
                  Slice{std::move(object), std::move(parts[0]), std::move(parts[1]), std::move(parts[2])});
    }
    if (!parts[0]) fail_syntax(offset, "expected a subscript between the brackets");
    return make(offset, depth, Subscript{std::move(object), std::move(parts[0])});
  }

  ExprPtr call(ExprPtr callee) {
    const uint32_t offset = tokens_.offset();
    CallArguments arguments = call_arguments();
    const uint32_t depth = std::max(depth_of(callee), depth_of(arguments));
    return make(offset, depth, Call{std::move(callee), std::move(arguments)});
  }

  CallArguments call_arguments() {
    tokens_.expect_operator("(");
    CallArguments arguments;
    while (!tokens_.is_operator(")")) {
      argument(arguments);
      if (!tokens_.take_operator(",")) break;
    }
    tokens_.expect_operator(")");
    return arguments;
  }

  void argument(CallArguments& arguments) {
    const Token& name = tokens_.peek();
    const Token& after = tokens_.peek(1);
    if (tokens_.is_operator("*") || tokens_.is_operator("**")) {
      ExprPtr& slot = tokens_.next().text == "*" ? arguments.star : arguments.double_star;
      if (slot) fail_syntax(name.offset, "this call has two arguments of this kind");
      slot = expression();
    } else if (name.type == Token::Type::kName && after.type == Token::Type::kOperator && after.text == "=") {
      tokens_.next();
      tokens_.next();
      arguments.named.emplace_back(name.text, expression());
    } else {
      if (!arguments.named.empty() || arguments.star || arguments.double_star) {
        fail_syntax(name.offset, "a positional argument follows a named one");
      }
      arguments.positional.push_back(expression());
    }
  }

  std::string dotted_name() {
    std::string name = tokens_.expect_identifier();
    while (tokens_.take_operator(".")) name += "." + tokens_.expect_identifier();
    return name;
  }

  // Whether what follows a test's name is an argument without parentheses: "x is divisibleby 3".
  bool begins_test_argument() const {
    switch (tokens_.peek().type) {
      case Token::Type::kString:
      case Token::Type::kInteger:
      case Token::Type::kFloat: return true;
      case Token::Type::kOperator: return tokens_.is_operator("[") || tokens_.is_operator("{");
      case Token::Type::kName: break;
      default: return false;
    }
    static constexpr std::string_view kKeywords[] = {"else", "or",  "and", "if",
                                                     "in",   "not", "is",  "recursive"};
    return std::find(std::begin(kKeywords), std::end(kKeywords), tokens_.peek().text) == std::end(kKeywords);
  }

  ExprPtr test(ExprPtr input) {
    const bool is_negated = tokens_.take_name("not");
    const uint32_t offset = tokens_.offset();
    std::string name = dotted_name();
    CallArguments arguments;
    if (tokens_.is_operator("(")) {
      arguments = call_arguments();
    } else if (begins_test_argument()) {
      const TokenStream::Nested nested(tokens_);
      arguments.positional.push_back(operand());
    }
    const uint32_t depth = std::max(depth_of(input), depth_of(arguments));
    ExprPtr result = make(offset, depth, Test{std::move(input), std::move(name), std::move(arguments)});
    return is_negated ? unary(offset, UnaryOp::kNot, std::move(result)) : std::move(result);
  }

  TokenStream& tokens_;
};

}  // namespace

ExprPtr parse_expression(TokenStream& tokens) { return ExpressionParser(tokens).expression(); }
ExprPtr parse_plain_expression(TokenStream& tokens) { return ExpressionParser(tokens).logical_or(); }
ExprPtr parse_tuple(TokenStream& tokens) { return ExpressionParser(tokens).tuple(false); }
ExprPtr parse_plain_tuple(TokenStream& tokens) { return ExpressionParser(tokens).tuple(true); }
ExprPtr parse_operand(TokenStream& tokens) { return ExpressionParser(tokens).operand(); }

ExprPtr parse_block_filters(TokenStream& tokens) {
  ExpressionParser parser(tokens);
  ExprPtr filter = parser.filters(nullptr);
  while (tokens.take_operator("|")) filter = parser.filters(std::move(filter));
  return filter;
}

}  // namespace tercet::text::jinja
