// Choice: one answer to one prompt as it grows, and which of its tokens may be shown: a token whose text is
// still held back, or belongs to a stop string, is not.
//
// A value; for one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/types.h"

namespace tercet::server {

struct ShownToken {
  core::TokenId token = 0;
  int64_t text_offset = 0;  // bytes of the answer before it
  core::TokenLogprobs logprobs;
};

// What became known since the last part.
struct ChoicePart {
  std::string text;
  std::vector<ShownToken> logprobs;      // if the request wants them
  std::vector<core::TokenId> token_ids;  // all that were generated
  std::vector<core::TokenLogprobs> prompt_logprobs;
  std::optional<core::FinishReason> finish;

  bool empty() const {
    return text.empty() && logprobs.empty() && token_ids.empty() && prompt_logprobs.empty() && !finish;
  }
};

class Choice {
 public:
  void push(core::TokenEvent event);
  // What may be shown of the events since the last call.
  ChoicePart take();

  bool ended() const { return finish_.has_value(); }
  std::optional<core::FinishReason> finish() const { return finish_; }
  const core::Usage& usage() const { return usage_; }
  int num_tokens() const { return num_tokens_; }
  // What stopped it, besides an end token of the model.
  std::optional<int> stop_string() const { return stop_string_; }
  std::optional<core::TokenId> last_token() const { return last_token_; }
  // Per token, natural logarithm; of the tokens that had log-probabilities.
  double mean_logprob() const { return num_scored_ == 0 ? 0 : sum_logprob_ / num_scored_; }

 private:
  ChoicePart next_;
  std::vector<ShownToken> held_;
  int64_t text_size_ = 0;  // released
  std::optional<core::FinishReason> finish_;
  std::optional<int> stop_string_;
  std::optional<core::TokenId> last_token_;
  core::Usage usage_;
  int num_tokens_ = 0;
  int num_scored_ = 0;
  double sum_logprob_ = 0;
};

}  // namespace tercet::server
