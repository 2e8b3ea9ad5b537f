// From a request to the tokens of its prompts. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "http/api_error.h"
#include "server/openai_request.h"
#include "server/served_model.h"

namespace tercet::server {

std::vector<core::TokenId> encode_prompt(const Prompt& prompt, const ServedModel& model, bool add_special);

// [prompts] One for chat. With a suffix: the prompt that asks to fill the gap. An error names the field.
Result<std::vector<std::vector<core::TokenId>>> encode_prompts(const GenerationRequest& request,
                                                               const ServedModel& model);

// A rendered and encoded conversation. A model without a chat template is an error.
Result<std::vector<core::TokenId>> encode_chat(text::ChatInput input, const ServedModel& model);

// Why the prompts cannot run, if so: one leaves less room in the context than `room` tokens (code
// context_length_exceeded, with both numbers), is empty, or has a token that the vocabulary does not have.
// The error names `field`.
std::optional<http::ApiError> check_prompts(const std::vector<std::vector<core::TokenId>>& prompts,
                                            const ServedModel& model, int room, const char* field);

// 404 model_not_found, unless the request names no model or one of the served.
std::optional<http::ApiError> check_model(const std::string& name, const ServedModel& model);

}  // namespace tercet::server
