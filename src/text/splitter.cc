#include "text/splitter.h"

#include <fmt/format.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "text/split_scanners.h"
#include "text/unicode.h"

namespace tercet::text {
namespace {

// What one search needs besides the expression. The stack of compiled code starts small and is enlarged when
// a match asks for more.
class MatchContext {
 public:
  explicit MatchContext(const pcre2_code* code)
      : data(pcre2_match_data_create_from_pattern(code, nullptr)), code_(code) {}
  MatchContext(const MatchContext&) = delete;
  MatchContext& operator=(const MatchContext&) = delete;
  ~MatchContext() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context_);
    pcre2_jit_stack_free(stack_);
  }

  // Searches `text` from `from` on; the range is in `data`.
  bool match(std::string_view text, size_t from) const {
    int result = run(text, from);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT && stack_ == nullptr) {
      stack_ = pcre2_jit_stack_create(size_t{32} << 10, size_t{64} << 20, nullptr);
      context_ = pcre2_match_context_create(nullptr);
      pcre2_jit_stack_assign(context_, nullptr, stack_);
      result = run(text, from);
    }
    return result >= 0;
  }

  pcre2_match_data* const data;

 private:
  int run(std::string_view text, size_t from) const {
    return pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                       PCRE2_NO_UTF_CHECK, data, context_);
  }
  const pcre2_code* code_;
  mutable pcre2_match_context* context_ = nullptr;
  mutable pcre2_jit_stack* stack_ = nullptr;
};

}  // namespace

struct Splitter::Regex {
  explicit Regex(pcre2_code* compiled) : code(compiled) {}
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;
  ~Regex() { pcre2_code_free(code); }
  pcre2_code* code;
};

Result<Splitter> Splitter::create(SplitPattern pattern, bool use_scanners) {
  Splitter splitter;
  splitter.pattern_ = std::move(pattern);
  const SplitPattern& p = splitter.pattern_;
  if (p.kind != PatternKind::kRegex) {
    if (p.kind == PatternKind::kLiteral && p.pattern.empty())
      return Error{ErrorCode::kInvalidArgument, "a split pattern is the empty string", {}};
    return splitter;
  }
  if (use_scanners && p.behavior == SplitBehavior::kIsolated && !p.invert) {
    splitter.scanner_ = find_split_scanner(p.pattern);
    if (splitter.scanner_ != nullptr) return splitter;
  }
  int code = 0;
  PCRE2_SIZE offset = 0;
  // Multi-line: in the syntax that tokenizer files use, $ matches at the end of a line.
  pcre2_code* compiled = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(p.pattern.data()), p.pattern.size(),
                                       PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                                       &code, &offset, nullptr);
  if (compiled == nullptr) {
    PCRE2_UCHAR message[128] = {};
    pcre2_get_error_message(code, message, sizeof(message));
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the split expression {:?} does not compile at offset {}: {}", p.pattern, offset,
                             reinterpret_cast<const char*>(message)),
                 {}};
  }
  pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);  // where JIT is missing, matching interprets
  splitter.regex_ = std::make_shared<Regex>(compiled);
  return splitter;
}

// Collects matches in ascending order and fills in what lies between.
class Splitter::Matches {
 public:
  explicit Matches(std::vector<Match>& all) : all_(all) {}
  void add(size_t begin, size_t end) {
    if (begin > done_) all_.push_back({done_, begin, false});
    if (end > begin) all_.push_back({begin, end, true});
    done_ = end;
  }
  void finish(size_t size) { add(size, size); }

 private:
  std::vector<Match>& all_;
  size_t done_ = 0;
};

namespace {

// The groups of three, from the right, of the run of digits [begin, end).
template <class Add>
void add_digit_groups(std::string_view text, size_t begin, size_t end, const Add& add) {
  size_t digits = 0;
  for (size_t pos = begin; pos < end; pos += utf8_length_by_lead(static_cast<unsigned char>(text[pos])))
    ++digits;
  for (size_t pos = begin; pos < end;) {
    size_t group_end = pos;
    do {
      group_end += utf8_length_by_lead(static_cast<unsigned char>(text[group_end]));
    } while (--digits % 3 != 0);
    add(pos, group_end);
    pos = group_end;
  }
}

}  // namespace

void Splitter::match_regex(std::string_view text, Matches& matches) const {
  const MatchContext context(regex_->code);
  for (size_t from = 0; from < text.size();) {
    if (!context.match(text, from)) break;
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(context.data);
    if (range[1] < range[0]) break;  // \K inside a lookahead
    if (range[1] > range[0]) {
      matches.add(range[0], range[1]);
      from = range[1];
    } else {
      // An empty match is a place to cut (as in "(?=...)"), and the search moves on by one character.
      matches.add(range[0], range[0]);
      if (range[0] == text.size()) break;
      from = range[0] + utf8_length_by_lead(static_cast<unsigned char>(text[range[0]]));
    }
  }
}

std::vector<Splitter::Match> Splitter::matches(std::string_view text) const {
  std::vector<Match> all;
  Matches matches(all);
  const bool digits =
      pattern_.kind == PatternKind::kDigitGroups || pattern_.kind == PatternKind::kDigitGroupsAtWordEnd;
  if (scanner_ != nullptr) {
    for (size_t pos = 0; pos < text.size();) {
      const size_t end = scanner_(text, pos);
      if (end > pos) matches.add(pos, end);
      pos = end > pos ? end : pos + utf8_length_by_lead(static_cast<unsigned char>(text[pos]));
    }
  } else if (digits) {
    const SplitScanner run = find_split_scanner(R"(\p{N}+)");
    for (size_t pos = 0; pos < text.size();) {
      const size_t end = run(text, pos);
      const bool counts = end > pos && (pattern_.kind == PatternKind::kDigitGroups || end == text.size() ||
                                        !(char_class(decode_utf8(text, end).code_point) & (kLetter | kMark)));
      if (counts) add_digit_groups(text, pos, end, [&](size_t b, size_t e) { matches.add(b, e); });
      pos = end > pos ? end : pos + utf8_length_by_lead(static_cast<unsigned char>(text[pos]));
    }
  } else if (pattern_.kind == PatternKind::kLiteral) {
    for (size_t at = 0; (at = text.find(pattern_.pattern, at)) != text.npos; at += pattern_.pattern.size()) {
      matches.add(at, at + pattern_.pattern.size());
    }
  } else {
    match_regex(text, matches);
  }
  matches.finish(text.size());
  return all;
}

void Splitter::split(std::string_view text, std::vector<std::string_view>& pieces) const {
  const auto add = [&](size_t begin, size_t end) {
    if (end > begin) pieces.push_back(text.substr(begin, end - begin));
  };
  std::vector<Match> found = matches(text);
  if (pattern_.invert) {
    for (Match& m : found) m.matched = !m.matched;
  }
  size_t open = 0;  // where the piece that is being joined begins
  for (size_t i = 0; i < found.size(); ++i) {
    const Match& m = found[i];
    const bool next_matched = i + 1 < found.size() && found[i + 1].matched;
    switch (pattern_.behavior) {
      case SplitBehavior::kIsolated: add(m.begin, m.end); break;
      case SplitBehavior::kRemoved:
        if (!m.matched) add(m.begin, m.end);
        break;
      case SplitBehavior::kMergedWithPrevious:
        // Only text takes the match behind it: of two adjacent matches the second stands alone.
        if (m.matched || !next_matched) add(open, m.end), open = m.end;
        break;
      case SplitBehavior::kMergedWithNext:
        if (!m.matched || next_matched) add(open, m.end), open = m.end;
        break;
      case SplitBehavior::kContiguous:
        if (m.matched != next_matched) add(open, m.end), open = m.end;
        break;
    }
  }
  if (pattern_.behavior != SplitBehavior::kIsolated && pattern_.behavior != SplitBehavior::kRemoved) {
    add(open, text.size());
  }
}

}  // namespace tercet::text
