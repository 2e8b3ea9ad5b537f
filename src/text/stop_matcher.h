// Finds stop strings in a text that arrives in parts. Text that may turn out to be the beginning of a stop
// string is held back, so that nothing of it is ever emitted; what follows a stop string never is either.
//
// A StopMatcher is a value: keep a copy to return to that point. Copies share the immutable automaton (Aho
// and Corasick 1975). Time is linear in the text, whatever the number of stop strings; at most the longest
// stop string is held back.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tercet::text {

class StopMatcher {
 public:
  // Empty strings are ignored. Without stop strings everything passes at once.
  explicit StopMatcher(const std::vector<std::string>& stop_strings = {});

  struct Result {
    std::string text;            // safe to emit
    std::optional<int> matched;  // the index of the stop string that was completed; `text` ends before it
  };
  // Of stop strings that several parts complete the one that ends first counts, of those the one that begins
  // first. After a match every push returns nothing, with the same `matched`.
  Result push(std::string_view text);
  // The end of the text: what was held back, nothing after a match.
  std::string flush();

  std::optional<int> matched() const { return matched_; }
  std::string_view pending() const { return pending_; }

 private:
  struct Automaton;
  std::shared_ptr<const Automaton> automaton_;  // null without stop strings
  size_t node_ = 0;
  std::string pending_;
  std::optional<int> matched_;
};

}  // namespace tercet::text
