#include "server/prompts.h"

#include <fmt/format.h>

#include <algorithm>

namespace tercet::server {
namespace {

using Tokens = std::vector<core::TokenId>;

// The order prefix, suffix, middle, as code models are trained; what the user writes spells no special token.
Result<Tokens> fill_in_the_middle(const Prompt& prompt, const std::string& suffix, const ServedModel& model) {
  const text::Tokenizer& tokenizer = model.text.tokenizer;
  const auto fim = tokenizer.fim();
  if (!fim)
    return Error{ErrorCode::kUnsupported,
                 "needs a model with tokens for filling in the middle, as code models have", "suffix"};
  Tokens tokens;
  if (tokenizer.adds_bos() && tokenizer.bos()) tokens.push_back(*tokenizer.bos());
  const auto append = [&](core::TokenId special, const Tokens& text) {
    tokens.push_back(special);
    tokens.insert(tokens.end(), text.begin(), text.end());
  };
  const auto* given = std::get_if<Tokens>(&prompt);
  append(fim->prefix, given != nullptr ? *given : tokenizer.encode(std::get<std::string>(prompt)));
  append(fim->suffix, tokenizer.encode(suffix));
  append(fim->middle, {});
  return tokens;
}

}  // namespace

Tokens encode_prompt(const Prompt& prompt, const ServedModel& model, bool add_special) {
  if (const Tokens* tokens = std::get_if<Tokens>(&prompt)) return *tokens;
  return model.text.tokenizer.encode(std::get<std::string>(prompt),
                                     {.add_special = add_special, .parse_special = true});
}

Result<Tokens> encode_chat(text::ChatInput input, const ServedModel& model) {
  if (!model.text.chat_template)
    return Error{ErrorCode::kUnsupported, "the model has no chat template; use /v1/completions", "messages"};
  input.special_tokens = model.text.special_tokens;
  const auto rendered = model.text.chat_template->render_with_spans(input);
  if (!rendered.ok())
    return Error{ErrorCode::kInvalidArgument,
                 "the model's chat template does not take them: " + rendered.error().to_string(), "messages"};
  return model.text.tokenizer.encode(rendered->text, rendered->spans);
}

Result<std::vector<Tokens>> encode_prompts(const GenerationRequest& request, const ServedModel& model) {
  std::vector<Tokens> prompts;
  if (request.is_chat) {
    TERCET_ASSIGN(Tokens tokens, encode_chat(request.chat, model));
    prompts.push_back(std::move(tokens));
  }
  for (const Prompt& prompt : request.prompts) {
    if (!request.suffix) {
      prompts.push_back(encode_prompt(prompt, model, request.add_special_tokens));
      continue;
    }
    TERCET_ASSIGN(Tokens tokens, fill_in_the_middle(prompt, *request.suffix, model));
    prompts.push_back(std::move(tokens));
  }
  return prompts;
}

std::optional<http::ApiError> check_prompts(const std::vector<Tokens>& prompts, const ServedModel& model,
                                            int room, const char* field) {
  http::ApiError error;
  error.param = field;
  const int vocab = model.text.tokenizer.vocab_size();
  for (const Tokens& prompt : prompts) {
    const auto bad = std::ranges::find_if(prompt, [&](core::TokenId id) { return id < 0 || id >= vocab; });
    if (bad != prompt.end()) {
      error.message = fmt::format("the prompt has token {}, the vocabulary has {}", *bad, vocab);
      return error;
    }
    if (prompt.empty()) {
      error.message = "the prompt has no token: there is nothing to continue";
      return error;
    }
    if (static_cast<int>(prompt.size()) + room <= model.context_length) continue;
    error.code = "context_length_exceeded";
    error.message = fmt::format(
        "This model's maximum context length is {} tokens, but the prompt has {} tokens{}. Please shorten "
        "it.",
        model.context_length, prompt.size(), room > 0 ? " and the answer needs room too" : "");
    return error;
  }
  return std::nullopt;
}

std::optional<http::ApiError> check_model(const std::string& name, const ServedModel& model) {
  if (name.empty() || std::ranges::find(model.names, name) != model.names.end()) return std::nullopt;
  http::ApiError error;
  error.status = 404;
  error.message =
      fmt::format("the model {} is not served here; there is {}", name, fmt::join(model.names, ", "));
  error.param = "model";
  error.code = "model_not_found";
  return error;
}

}  // namespace tercet::server
