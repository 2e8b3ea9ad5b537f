// A chat request in the OpenAI API's JSON, as far as a chat template sees it.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/chat_template.h"

namespace tercet::text {

// `json`: an array of messages, or an object with "messages" and perhaps "tools", "chat_template_kwargs",
// "add_generation_prompt" and "continue_final_message"; other fields are ignored. Special tokens are the
// caller's to add. Errors name the field.
Result<ChatInput> chat_input_from_json(std::string_view json);

}  // namespace tercet::text
