#include "server/choice.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tercet::server {

void Choice::push(core::TokenEvent event) {
  std::ranges::move(event.prompt_logprobs, std::back_inserter(next_.prompt_logprobs));
  if (event.token) {
    ++num_tokens_;
    last_token_ = event.token;
    next_.token_ids.push_back(*event.token);
    if (event.logprob) {
      ++num_scored_;
      sum_logprob_ += event.logprob->logprob;
      held_.push_back({*event.token, event.text_offset, {*event.logprob, std::move(event.top_logprobs)}});
    }
  }
  next_.text += event.text;
  text_size_ += static_cast<int64_t>(event.text.size());
  if (!event.finish) return;
  finish_ = next_.finish = event.finish;
  stop_string_ = event.stop_string;
  if (event.usage) usage_ = *event.usage;
}

ChoicePart Choice::take() {
  ChoicePart part = std::exchange(next_, {});
  // Without a stop string the end releases everything, tokens without text too.
  const bool all = finish_ && !stop_string_;
  const auto still_held = std::ranges::find_if(
      held_, [&](const ShownToken& token) { return !all && token.text_offset >= text_size_; });
  part.logprobs.assign(std::move_iterator(held_.begin()), std::move_iterator(still_held));
  held_.erase(held_.begin(), still_held);
  return part;
}

}  // namespace tercet::server
