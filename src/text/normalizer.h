// Rewriting a text before it is split: Unicode normal forms, case, replacements. A chain of steps, each plain
// data. Immutable once created; safe from any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/splitter.h"

namespace tercet::text {

enum class NormalizerKind {
  kNfc,
  kNfd,
  kNfkc,
  kNfkd,
  kLowercase,
  kStripAccents,   // drops marks (Mn)
  kReplace,        // every `pattern` becomes `content`
  kPrepend,        // puts `content` before a text that is not empty
  kPrependUnless,  // the same, where the text does not begin with `content`
  kStripLeft,      // white space
  kStripRight,
  kBert,            // clean_text, handle_chinese_chars; accents and case are steps of their own
  kCharsmap,        // SentencePiece's precompiled charsmap in `content`
  kCollapseSpaces,  // runs of spaces become one; leading and trailing ones go (SentencePiece's
                    // remove_extra_whitespaces)
};

struct NormalizerStep {
  NormalizerKind kind = NormalizerKind::kNfc;
  std::string pattern;
  bool is_regex = false;
  std::string content;
  bool clean_text = true;            // kBert
  bool handle_chinese_chars = true;  // kBert
  bool controls_first = false;       // kBert: clean_text drops control characters that are white space too
  bool only_first = false;           // kPrepend, kPrependUnless: only at the beginning of the whole text
};

class Normalizer {
 public:
  Normalizer() = default;
  // kInvalidArgument for a pattern that does not compile or a charsmap that is damaged.
  static Result<Normalizer> create(std::vector<NormalizerStep> steps);

  bool empty() const { return steps_.empty(); }
  // `is_first`: `text` begins the whole text. Valid UTF-8 stays valid.
  std::string apply(std::string_view text, bool is_first) const;

 private:
  std::vector<NormalizerStep> steps_;
  std::vector<Splitter> patterns_;  // of the kReplace steps, in order
};

}  // namespace tercet::text
