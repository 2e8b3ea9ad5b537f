// Splitting text into words before the model sees it (the "pre-tokenizer"). A pattern is a regular expression
// as tokenizer files publish it, or a literal. The expressions that most models use have a hand-written
// scanner, which gives what the expression would, several times faster; all others run in PCRE2.
//
// Immutable; safe from any thread. Time is linear in the text: by construction for the scanners and for every
// expression in pre_tokenizers.cc, by giving up on others.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tercet::text {

// What becomes of the matches; the text between matches is always a piece of its own, or joined as named
// here.
enum class SplitBehavior {
  kIsolated,            // each match is a piece
  kRemoved,             // matches are dropped
  kMergedWithPrevious,  // a match ends the piece before it
  kMergedWithNext,      // a match begins the piece after it
  kContiguous,          // adjacent matches form one piece
};

enum class PatternKind {
  kRegex,
  kLiteral,
  kDigitGroups,           // runs of digits in groups of three from the right: 1|234|567
  kDigitGroupsAtWordEnd,  // the same, for runs that no letter or mark follows
};

struct SplitPattern {
  std::string pattern;  // of kRegex and kLiteral
  PatternKind kind = PatternKind::kRegex;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;  // what does not match counts as the match
};

class Splitter {
 public:
  // kInvalidArgument when the expression does not compile; the message shows where.
  // `use_scanners` false: PCRE2 even where a scanner exists (to compare the two).
  static Result<Splitter> create(SplitPattern pattern, bool use_scanners = true);

  // Appends the pieces of `text` (valid UTF-8), in order and without empty ones. An expression that takes too
  // many steps (hundreds for each byte of the text) leaves the rest of `text` unsplit.
  void split(std::string_view text, std::vector<std::string_view>& pieces) const;

  // The matches and what lies between them: all of `text`, in order. An expression's empty matches, as of
  // "(?=b)", only cut what lies between, or are matches too.
  struct Match {
    size_t begin, end;
    bool matched;
  };
  std::vector<Match> matches(std::string_view text, bool with_empty = false) const;

  bool has_scanner() const { return scanner_ != nullptr; }

 private:
  struct Regex;
  class Matches;
  using Scanner = size_t (*)(std::string_view text, size_t pos);

  Splitter() = default;
  void match_regex(std::string_view text, Matches& matches) const;

  SplitPattern pattern_;
  Scanner scanner_ = nullptr;
  std::shared_ptr<const Regex> regex_;
};

}  // namespace tercet::text
