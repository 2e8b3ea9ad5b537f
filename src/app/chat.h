// A conversation in the terminal, without the terminal: what a line that the user typed does, what the prompt
// of the next answer is, and which turns are dropped when the context is full. One thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/answer.h"
#include "base/result.h"
#include "core/generator.h"

namespace tercet::app {

struct Message {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

// The tokens of a prompt that asks for the next message.
using RenderPrompt = std::function<Result<std::vector<core::TokenId>>(const std::vector<Message>& messages)>;

struct ChatModel {
  core::Generator* generator = nullptr;
  RenderPrompt render;
  int context_length = 0;  // tokens, prompt and answer together
};

struct ChatSettings {
  std::string system;  // "": none
  core::SamplingParams sampling;
  core::StopParams stop;
};

// Where the chat writes: the answer as it comes, and what is said about it, in whole lines.
struct ChatOutput {
  std::function<void(std::string_view)> text;
  std::function<void(std::string_view)> notice;
  std::function<bool()> interrupted;
};

// Renders `messages`, dropping the oldest turns (a user's message and what answered it, never the system's
// nor the last user's) until `reserve` tokens remain of the context. Returns the number of messages dropped
// in `num_dropped`. kExhausted when the last message alone is too long.
Result<std::vector<core::TokenId>> fit_prompt(std::vector<Message>& messages, const ChatModel& model,
                                              int reserve, int* num_dropped);

class Chat {
 public:
  Chat(ChatModel model, ChatSettings settings) : model_(std::move(model)), settings_(std::move(settings)) {
    reset();
  }

  // Does what one input of the user asks: a command that begins with /, or a message to answer. An error is
  // to be shown; the chat goes on. False: the user wants to leave.
  Result<bool> handle(std::string_view input, const ChatOutput& output);

  const std::vector<Message>& messages() const { return messages_; }
  const std::optional<Answer>& last_answer() const { return last_answer_; }

 private:
  Status answer(const ChatOutput& output);
  Status regenerate(const ChatOutput& output);
  Status set_parameter(std::string_view argument, const ChatOutput& output);
  Status save(const std::string& path, const ChatOutput& output) const;
  std::string stats() const;
  void set_system(std::string_view text);
  void reset();

  ChatModel model_;
  ChatSettings settings_;
  std::vector<Message> messages_;
  std::optional<Answer> last_answer_;
  uint64_t next_id_ = 1;
  int num_regenerated_ = 0;  // answers to the last message that were thrown away
  int num_answers_ = 0;
  int num_dropped_ = 0;
  int64_t num_prompt_tokens_ = 0;
  int64_t num_cached_tokens_ = 0;
  int64_t num_answer_tokens_ = 0;
};

// A key to the conversation's commands, for /help.
std::string_view chat_help();

}  // namespace tercet::app
