#include "app/tokenize.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "app/escaped.h"
#include "base/parse_number.h"
#include "text/chat_request.h"
#include "text/unicode.h"

namespace tercet::app {
namespace {

using core::TokenId;
using nlohmann::json;
using Output = TokenizeOptions::Output;

struct Prompt {
  std::string text;
  std::vector<TokenId> tokens;
};

Result<Prompt> prompt_of_chat(const text::ModelText& model, const TokenizeOptions& options) {
  if (!model.chat_template) {
    return Error{ErrorCode::kInvalidArgument, "the model has no chat template; give one with --template",
                 options.path};
  }
  TERCET_ASSIGN(text::ChatInput input, text::chat_input_from_json(options.text));
  input.special_tokens = model.special_tokens;
  TERCET_ASSIGN(text::RenderedChat chat, model.chat_template->render_with_spans(input));
  std::vector<TokenId> tokens = model.tokenizer.encode(chat.text, chat.spans);
  return Prompt{std::move(chat.text), std::move(tokens)};
}

json json_token(const text::Tokenizer& tokenizer, TokenId id) {
  const std::string_view piece = tokenizer.piece(id);
  json token = {{"id", id}, {"text", piece}, {"special", tokenizer.is_control(id)}};
  // A part of a character has no text of its own.
  if (!text::is_valid_utf8(piece)) token["bytes"] = std::vector<uint8_t>(piece.begin(), piece.end());
  return token;
}

void print_json(std::ostream& out, const text::Tokenizer& tokenizer, const Prompt& prompt) {
  json root = {{"count", prompt.tokens.size()}, {"text", prompt.text}, {"tokens", json::array()}};
  for (const TokenId id : prompt.tokens) root["tokens"].push_back(json_token(tokenizer, id));
  out << root.dump(-1, ' ', false, json::error_handler_t::replace) << "\n";
}

void print_table(std::ostream& out, const text::Tokenizer& tokenizer, const std::vector<TokenId>& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    out << fmt::format("{:>6} {:>7}  \"{}\"{}\n", i, tokens[i], escaped(tokenizer.piece(tokens[i])),
                       tokenizer.is_control(tokens[i]) ? "  special" : "");
  }
  out << fmt::format("{} token{}\n", tokens.size(), tokens.size() == 1 ? "" : "s");
}

// The prompt line by line, each line escaped.
void print_prompt(std::ostream& out, std::string_view text) {
  out << "Prompt\n";
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const size_t size = end == text.npos ? text.size() : end + 1;
    out << "  " << escaped(text.substr(0, size)) << "\n";
    text.remove_prefix(size);
  }
  out << "\nTokens\n";
}

Error no_token(const text::Tokenizer& tokenizer, int64_t id) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("{} is no token; the vocabulary has {}", id, tokenizer.vocab_size()),
          {}};
}

Result<json> convert_line(const TokenizeOptions& options, const text::Tokenizer& tokenizer,
                          const json& line) {
  if (line.is_string()) {
    return json(
        tokenizer.encode(line.get_ref<const std::string&>(),
                         {.add_special = options.add_special, .parse_special = options.parse_special}));
  }
  std::vector<TokenId> ids;
  for (const json& id : line.is_array() ? line : json::array({line})) {
    if (!id.is_number_integer())
      return Error{ErrorCode::kInvalidArgument, "expected a JSON string or an array of token ids", {}};
    if (id < 0 || id >= tokenizer.vocab_size()) return no_token(tokenizer, id.get<int64_t>());
    ids.push_back(id.get<TokenId>());
  }
  return json(tokenizer.decode(ids));
}

Status print_lines(const TokenizeOptions& options, const text::Tokenizer& tokenizer, std::ostream& out) {
  std::string_view rest = options.text;
  for (size_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    auto converted = convert_line(options, tokenizer, json::parse(line, nullptr, false));
    if (!converted.ok()) {
      return Error{converted.error().code, converted.error().message, fmt::format("line {}", number)};
    }
    out << converted->dump(-1, ' ', false, json::error_handler_t::replace) << "\n";
  }
  return {};
}

Status print_decoded(const TokenizeOptions& options, const text::Tokenizer& tokenizer, std::ostream& out) {
  TERCET_ASSIGN(std::vector<TokenId> tokens, parse_token_ids(options.text));
  for (const TokenId id : tokens) {
    if (id >= tokenizer.vocab_size()) return no_token(tokenizer, id);
  }
  std::string decoded = tokenizer.decode(tokens);
  if (options.output == Output::kJson) {
    print_json(out, tokenizer, {std::move(decoded), std::move(tokens)});
  } else {
    out << decoded << "\n";
  }
  return {};
}

}  // namespace

Result<std::vector<TokenId>> parse_token_ids(std::string_view text) {
  std::vector<TokenId> ids;
  constexpr std::string_view kBetween = " \t\r\n,[]";
  for (size_t pos = text.find_first_not_of(kBetween); pos != text.npos;
       pos = text.find_first_not_of(kBetween, pos)) {
    const size_t end = std::min(text.find_first_of(kBetween, pos), text.size());
    const auto id = parse_number<TokenId>(text.substr(pos, end - pos));
    if (!id || *id < 0) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("\"{}\" is no token id; expected whole numbers from 0, with spaces or commas "
                               "between",
                               escaped(text.substr(pos, end - pos))),
                   {}};
    }
    ids.push_back(*id);
    pos = end;
  }
  return ids;
}

Status tokenize(const TokenizeOptions& options, std::ostream& out) {
  TERCET_ASSIGN(const text::ModelText model, model::open_text(options.path, options.package));
  const text::Tokenizer& tokenizer = model.tokenizer;
  if (options.input == TokenizeOptions::Input::kIds) return print_decoded(options, tokenizer, out);
  if (options.input == TokenizeOptions::Input::kLines) return print_lines(options, tokenizer, out);
  Prompt prompt{options.text, {}};
  if (options.input == TokenizeOptions::Input::kChat) {
    TERCET_ASSIGN(prompt, prompt_of_chat(model, options));
  } else {
    prompt.tokens = tokenizer.encode(
        prompt.text, {.add_special = options.add_special, .parse_special = options.parse_special});
  }
  switch (options.output) {
    case Output::kIds: out << fmt::format("{}\n", fmt::join(prompt.tokens, " ")); break;
    case Output::kJson: print_json(out, tokenizer, prompt); break;
    case Output::kTable:
      if (options.input == TokenizeOptions::Input::kChat) print_prompt(out, prompt.text);
      print_table(out, tokenizer, prompt.tokens);
      break;
  }
  return {};
}

}  // namespace tercet::app
