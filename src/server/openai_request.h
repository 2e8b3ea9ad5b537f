// Requests of the OpenAI API, and of vLLM's and llama.cpp's additions to it, as values. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "core/types.h"
#include "server/fields.h"
#include "server/served_model.h"
#include "text/chat_template.h"

namespace tercet::server {

using Prompt = std::variant<std::string, std::vector<core::TokenId>>;

struct GenerationRequest {
  bool is_chat = false;
  std::string model;
  std::vector<Prompt> prompts;        // completions: at least one
  std::optional<std::string> suffix;  // completions: the text behind the gap to fill
  bool add_special_tokens = true;     // completions
  text::ChatInput chat;               // chat, without the special tokens

  core::SamplingParams sampling;
  core::StopParams stop;
  int n = 1;        // answers to each prompt
  int best_of = 1;  // of so many, at least n
  int priority = 0;
  std::string cache_salt;

  bool echo = false;
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;
  bool return_token_ids = false;
};

// Fields that nobody knows are ignored; those that are known and not built are refused. Errors: `where` names
// the field.
Result<GenerationRequest> parse_completion(const Value& body, const ServedModel& model);
Result<GenerationRequest> parse_chat(const Value& body, const ServedModel& model);

// A text, token ids, or an array of either, under `name`; at least one, at most `most`.
Result<std::vector<Prompt>> read_prompts(const Fields& fields, const char* name, size_t most);

// The part of a body that a chat template sees: messages, tools, chat_template_kwargs and the like. Lists of
// text parts become one text.
Result<text::ChatInput> parse_chat_input(const Value& body);

}  // namespace tercet::server
