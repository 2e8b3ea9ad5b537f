// From a conversation to the tokens of a prompt.
#pragma once

#include <string>
#include <vector>

#include "app/chat.h"
#include "base/result.h"
#include "model/package.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace tercet::app {

// Renders `messages` with the package's template, which must exist, and asks for the assistant's turn.
// Special tokens come from the template only: a user who writes "<|im_end|>" gets its characters.
Result<std::vector<core::TokenId>> chat_prompt(const model::Package& package,
                                               const std::vector<Message>& messages);

// A prompt that is taken as it is: special tokens in it count, and the tokenizer adds its own (BOS).
std::vector<core::TokenId> raw_prompt(const text::Tokenizer& tokenizer, const std::string& text);

// What the model's files recommend, else temperature 0.8, top-p 0.95, min-p 0.05.
core::SamplingParams sampling_defaults(const model::GenerationDefaults& defaults);

}  // namespace tercet::app
