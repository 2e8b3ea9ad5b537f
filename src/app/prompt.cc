#include "app/prompt.h"

namespace tercet::app {

Result<std::vector<core::TokenId>> chat_prompt(const model::Package& package,
                                               const std::vector<Message>& messages) {
  text::ChatInput input;
  for (const Message& message : messages)
    input.messages.push_back(text::chat_message(message.role, message.content));
  input.special_tokens = package.special_tokens;
  TERCET_ASSIGN(const text::RenderedChat rendered, package.chat_template.value().render_with_spans(input));
  return package.tokenizer.encode(rendered.text, rendered.spans);
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
