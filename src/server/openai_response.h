// Bodies and stream parts of the OpenAI API, as JSON text.
//
// A ResponseWriter belongs to one request and one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/choice.h"
#include "server/openai_request.h"
#include "server/served_model.h"

namespace tercet::server {

// One answer, whole.
struct FinishedChoice {
  const Choice* choice = nullptr;
  ChoicePart whole;
  int prompt = 0;  // index of its prompt
};

class ResponseWriter {
 public:
  // What it refers to outlives it. `prompts`: the tokens of each prompt. `id` begins with the kind
  // ("chatcmpl-...").
  ResponseWriter(const GenerationRequest& request, const ServedModel& model,
                 const std::vector<std::vector<core::TokenId>>& prompts, std::string id);

  const std::string& id() const { return id_; }

  // The body of an answer that is not streamed.
  std::string body(const std::vector<FinishedChoice>& choices, const core::Usage& usage) const;

  // Stream parts, complete events each ("data: ...\n\n"). `usage` null: left out.
  // The first one of a choice: the role, or the echoed prompt (nothing for a completion without echo).
  std::string first_part(int index, const core::Usage* usage);
  std::string part(int index, const Choice& choice, const ChoicePart& part, const core::Usage* usage);
  std::string usage_part(const core::Usage& usage) const;

 private:
  // Where a choice's log-probabilities stand in its text, for text_offset.
  struct TextPosition {
    bool begun = false;
    int64_t bytes = 0;
    int64_t chars = 0;
    std::string text;  // released after `bytes`
  };
  struct Json;

  std::string prompt_text(int prompt) const;
  int prompt_of(int index) const { return index / request_.n; }

  const GenerationRequest& request_;
  const ServedModel& model_;
  const std::vector<std::vector<core::TokenId>>& prompts_;
  std::string id_;
  int64_t created_;
  std::vector<TextPosition> positions_;  // [choices]
};

// {"object": "list", "data": [...]} and one entry of it.
std::string models_body(const ServedModel& model);
std::string model_body(const ServedModel& model, const std::string& name);
std::string tokenize_body(const std::vector<core::TokenId>& tokens, const ServedModel& model,
                          bool with_texts);
// The tokenizer's settings under the names of Hugging Face's tokenizer_config.json, as vLLM gives them.
std::string tokenizer_info_body(const ServedModel& model);
std::string detokenize_body(const std::string& text);

}  // namespace tercet::server
