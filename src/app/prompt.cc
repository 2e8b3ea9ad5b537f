#include "app/prompt.h"

#include <string_view>

namespace tercet::app {

std::vector<core::TokenId> encode_chat(const text::Tokenizer& tokenizer, const text::RenderedChat& chat) {
  const std::string_view text = chat.text;
  const auto encode = [&](std::string_view part, bool parse_special) {
    return tokenizer.encode(part, {.add_special = false, .parse_special = parse_special});
  };
  bool user_wrote_special = false;
  for (const text::TextSpan& span : chat.spans) {
    const std::string_view part = text.substr(span.begin, span.end - span.begin);
    if (!span.is_template_text) user_wrote_special |= encode(part, true) != encode(part, false);
  }
  // Ordinary text is tokenized across the borders of spans; only what would become special is cut out.
  if (!user_wrote_special) return encode(text, true);
  std::vector<core::TokenId> tokens;
  for (const text::TextSpan& span : chat.spans) {
    const auto part = encode(text.substr(span.begin, span.end - span.begin), span.is_template_text);
    tokens.insert(tokens.end(), part.begin(), part.end());
  }
  return tokens;
}

Result<std::vector<core::TokenId>> chat_prompt(const model::Package& package,
                                               const std::vector<Message>& messages) {
  text::ChatInput input;
  for (const Message& message : messages)
    input.messages.push_back(text::chat_message(message.role, message.content));
  input.special_tokens = package.special_tokens;
  TERCET_ASSIGN(const text::RenderedChat rendered, package.chat_template.value().render_with_spans(input));
  return encode_chat(package.tokenizer, rendered);
}

std::vector<core::TokenId> raw_prompt(const text::Tokenizer& tokenizer, const std::string& text) {
  return tokenizer.encode(text, {.add_special = true, .parse_special = true});
}

core::SamplingParams sampling_defaults(const model::GenerationDefaults& defaults) {
  core::SamplingParams params;
  const bool recommends = defaults.temperature || defaults.top_p || defaults.min_p || defaults.top_k;
  params.temperature = defaults.temperature.value_or(recommends ? 1.0f : 0.8f);
  params.top_p = defaults.top_p.value_or(recommends ? 1.0f : 0.95f);
  params.min_p = defaults.min_p.value_or(recommends ? 0.0f : 0.05f);
  params.top_k = defaults.top_k.value_or(0);
  params.repetition_penalty = defaults.repetition_penalty.value_or(1.0f);
  return params;
}

}  // namespace tercet::app
