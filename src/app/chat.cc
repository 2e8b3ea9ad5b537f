#include "app/chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/sampling_flags.h"
#include "base/file.h"

namespace tercet::app {
namespace {

struct Split {
  std::string_view first;
  std::string_view rest;
};

std::string_view trim(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \t\n"), text.size());
  return text.substr(begin, text.find_last_not_of(" \t\n") + 1 - begin);
}

Split split_word(std::string_view text) {
  text = trim(text);
  const size_t space = std::min(text.find_first_of(" \t\n"), text.size());
  return {text.substr(0, space), trim(text.substr(space))};
}

}  // namespace

std::string_view chat_help() {
  return "/help           this list\n"
         "/system TEXT    set the system message; without TEXT: remove it\n"
         "/reset          forget the conversation\n"
         "/regen          another answer to the last message\n"
         "/save FILE      write the conversation as JSON\n"
         "/params         show the sampling parameters; /params NAME VALUE sets one\n"
         "/stats          speed and memory\n"
         "/quit           leave, as Ctrl-D does\n"
         "A line that ends in \\ goes on in the next. Ctrl-C stops an answer.\n";
}

Result<std::vector<core::TokenId>> fit_prompt(std::vector<Message>& messages, const ChatModel& model,
                                              int reserve, int* num_dropped) {
  *num_dropped = 0;
  for (;;) {
    TERCET_ASSIGN(std::vector<core::TokenId> prompt, model.render(messages));
    const auto room = static_cast<int64_t>(model.context_length) - reserve;
    if (static_cast<int64_t>(prompt.size()) <= room) return prompt;
    const auto is_user = [](const Message& message) { return message.role == "user"; };
    const auto oldest = std::ranges::find_if(messages, is_user);
    const auto next = oldest == messages.end() ? oldest : std::find_if(oldest + 1, messages.end(), is_user);
    if (next == messages.end()) {
      // No older turn is left: a short answer is better than none.
      if (static_cast<int>(prompt.size()) < model.context_length) return prompt;
      return Error{
          ErrorCode::kExhausted,
          fmt::format("the message takes {} tokens, the context has {}; shorten it or set a larger -c",
                      prompt.size(), model.context_length),
          ""};
    }
    *num_dropped += static_cast<int>(next - oldest);
    messages.erase(oldest, next);
  }
}

Result<bool> Chat::handle(std::string_view input, const ChatOutput& output) {
  if (trim(input).empty()) return true;
  if (!input.starts_with('/')) {
    messages_.push_back({"user", std::string(input)});
    num_regenerated_ = 0;
    if (Status answered = answer(output); !answered) {
      if (messages_.back().role == "user") messages_.pop_back();
      return answered.error();
    }
    return true;
  }
  const auto [command, argument] = split_word(input);
  if (command == "/quit" || command == "/exit") return false;
  if (command == "/help") {
    output.notice(chat_help());
  } else if (command == "/system") {
    set_system(argument);
  } else if (command == "/reset") {
    reset();
  } else if (command == "/regen") {
    TERCET_TRY(regenerate(output));
  } else if (command == "/save") {
    TERCET_TRY(save(std::string(argument), output));
  } else if (command == "/params") {
    TERCET_TRY(set_parameter(argument, output));
  } else if (command == "/stats") {
    output.notice(stats());
  } else {
    return Error{ErrorCode::kInvalidArgument, "is no command; /help lists them", std::string(command)};
  }
  return true;
}

Status Chat::answer(const ChatOutput& output) {
  const int max_tokens = settings_.stop.max_tokens;
  const int reserve =
      max_tokens >= 0 ? std::min(max_tokens, model_.context_length / 2) : model_.context_length / 4;
  int num_dropped = 0;
  core::Request request;
  request.id = next_id_++;
  request.sampling = settings_.sampling;
  request.stop = settings_.stop;
  auto kept = messages_;
  TERCET_ASSIGN(request.prompt, fit_prompt(kept, model_, reserve, &num_dropped));
  messages_ = std::move(kept);
  if (num_dropped > 0) {
    num_dropped_ += num_dropped;
    output.notice(fmt::format("the context of {} tokens is full: the oldest {} messages are dropped\n",
                              model_.context_length, num_dropped));
  }
  // A fixed seed would give the answer that was just thrown away.
  if (request.sampling.seed) *request.sampling.seed += static_cast<uint64_t>(num_regenerated_);
  TERCET_ASSIGN(last_answer_, generate(*model_.generator, request, output.text, output.interrupted));
  ++num_answers_;
  num_prompt_tokens_ += last_answer_->usage.num_prompt_tokens;
  num_cached_tokens_ += last_answer_->usage.num_cached_tokens;
  num_answer_tokens_ += static_cast<int64_t>(last_answer_->tokens.size());
  if (last_answer_->finish == core::FinishReason::kAborted) output.notice("stopped\n");
  if (last_answer_->finish == core::FinishReason::kLength)
    output.notice("the answer ends at its limit of tokens\n");
  messages_.push_back({"assistant", last_answer_->text});
  return {};
}

Status Chat::regenerate(const ChatOutput& output) {
  if (messages_.empty() || messages_.back().role != "assistant") {
    return Error{ErrorCode::kInvalidArgument, "there is no answer to do again", "/regen"};
  }
  const Message before = messages_.back();
  messages_.pop_back();
  ++num_regenerated_;
  Status answered = answer(output);
  if (!answered) messages_.push_back(before);
  return answered;
}

Status Chat::set_parameter(std::string_view argument, const ChatOutput& output) {
  const auto [name, value] = split_word(argument);
  if (!name.empty()) TERCET_TRY(set_sampling(settings_.sampling, name, value));
  output.notice(describe(settings_.sampling) + "\n");
  return {};
}

Status Chat::save(const std::string& path, const ChatOutput& output) const {
  if (path.empty()) return Error{ErrorCode::kInvalidArgument, "needs the name of a file", "/save"};
  auto messages = nlohmann::ordered_json::array();
  for (const Message& message : messages_) {
    messages.push_back({{"role", message.role}, {"content", message.content}});
  }
  const nlohmann::ordered_json json = {{"messages", messages}};
  TERCET_TRY(
      write_file(path, json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"));
  output.notice(fmt::format("{} messages written to {}\n", messages_.size(), path));
  return {};
}

std::string Chat::stats() const {
  return fmt::format(
      "{}in all: {} answers, {} prompt tokens ({} cached), {} answer tokens, {} messages dropped\n",
      last_answer_ ? format_stats(*last_answer_) : "", num_answers_, num_prompt_tokens_, num_cached_tokens_,
      num_answer_tokens_, num_dropped_);
}

void Chat::set_system(std::string_view text) {
  settings_.system = text;
  if (!messages_.empty() && messages_.front().role == "system") messages_.erase(messages_.begin());
  if (!text.empty()) messages_.insert(messages_.begin(), {"system", settings_.system});
}

void Chat::reset() {
  messages_.clear();
  set_system(std::string(settings_.system));
}

}  // namespace tercet::app
