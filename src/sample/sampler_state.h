// SamplerState: which tokens a sequence has seen, for the penalties. A value: a copy taken before drafted
// tokens are pushed, or a rewind afterwards, is the state as if they had never been. Copies share the
// prompt's part.
//
// Thread-safe as any value is.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/types.h"

namespace tercet::sample {

class SamplerState {
 public:
  struct Count {
    core::TokenId token;
    int count;
    bool operator==(const Count&) const = default;
  };

  SamplerState() = default;
  explicit SamplerState(std::span<const core::TokenId> prompt);

  // Each committed output token is pushed once.
  void push(core::TokenId token);
  // Forgets the last n pushed tokens; n is at most output().size().
  void rewind(size_t n);

  // The pushed tokens in order. With the prompt they are all there is to save: pushing them again restores
  // the state.
  std::span<const core::TokenId> output() const { return output_; }

  // Distinct tokens of the prompt, ascending.
  std::span<const core::TokenId> prompt_tokens() const;
  // Distinct tokens of the output with their number of occurrences, ascending.
  std::span<const Count> output_counts() const { return counts_; }

  bool operator==(const SamplerState& other) const;

 private:
  std::shared_ptr<const std::vector<core::TokenId>> prompt_;  // null: empty
  std::vector<core::TokenId> output_;
  std::vector<Count> counts_;  // ascending by token, every count positive, their sum output_.size()
};

}  // namespace tercet::sample
