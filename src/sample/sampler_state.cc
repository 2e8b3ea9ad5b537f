#include "sample/sampler_state.h"

#include <algorithm>

#include "base/check.h"

namespace tercet::sample {
namespace {

std::vector<SamplerState::Count>::iterator find(std::vector<SamplerState::Count>& counts,
                                                core::TokenId token) {
  return std::lower_bound(
      counts.begin(), counts.end(), token,
      [](const SamplerState::Count& entry, core::TokenId id) { return entry.token < id; });
}

}  // namespace

SamplerState::SamplerState(std::span<const core::TokenId> prompt) {
  if (prompt.empty()) return;
  std::vector<core::TokenId> tokens(prompt.begin(), prompt.end());
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  prompt_ = std::make_shared<const std::vector<core::TokenId>>(std::move(tokens));
}

void SamplerState::push(core::TokenId token) {
  output_.push_back(token);
  auto entry = find(counts_, token);
  if (entry != counts_.end() && entry->token == token) {
    ++entry->count;
  } else {
    counts_.insert(entry, {token, 1});
  }
}

void SamplerState::rewind(size_t n) {
  TERCET_CHECK(n <= output_.size());
  for (; n > 0; --n) {
    auto entry = find(counts_, output_.back());
    if (--entry->count == 0) counts_.erase(entry);
    output_.pop_back();
  }
}

std::span<const core::TokenId> SamplerState::prompt_tokens() const {
  return prompt_ ? std::span<const core::TokenId>(*prompt_) : std::span<const core::TokenId>();
}

bool SamplerState::operator==(const SamplerState& other) const {
  return std::ranges::equal(prompt_tokens(), other.prompt_tokens()) && output_ == other.output_;
}

}  // namespace tercet::sample
