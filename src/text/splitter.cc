#include "text/splitter.h"

#include <fmt/format.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <optional>

#include "text/split_scanners.h"
#include "text/unicode.h"

namespace tercet::text {
namespace {

// The searches of one text. PCRE2 sees a window of the text and may take steps in proportion to it. Where a
// match touches the window's end, it is tried again at that one place, with a larger window, which is paid
// from a budget linear in the text: no expression can look far ahead, or try many ways, at every place.
class Search {
 public:
  Search(const pcre2_code* code, std::string_view text)
      : code_(code),
        text_(text),
        budget_((size_t{1} << 26) + 256 * text.size()),
        data_(pcre2_match_data_create_from_pattern(code, nullptr)),
        context_(pcre2_match_context_create(nullptr)) {}
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;
  ~Search() {
    pcre2_match_data_free(data_);
    pcre2_match_context_free(context_);
    pcre2_jit_stack_free(stack_);
  }

  // The first match from `from` on. False: there is none, or the budget is spent.
  bool find(size_t from, size_t* begin, size_t* end) {
    size_t window = kFirstWindow;
    while (true) {
      const size_t limit = window_end(from, window);
      const bool is_whole = limit == text_.size();
      const bool is_first = window == kFirstWindow;
      const int result = run(from, limit, steps_in(limit - from),
                             (is_whole ? 0 : PCRE2_PARTIAL_HARD) | (is_first ? 0 : PCRE2_ANCHORED));
      const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data_);
      // An empty match at the window's end has not seen what follows.
      if (result >= 0 && (is_whole || range[0] < limit)) {
        *begin = range[0], *end = range[1];
        return true;
      }
      if (result >= 0 || result == PCRE2_ERROR_NOMATCH) {
        if (is_first && is_whole) return false;
        from = is_first ? limit : next_char(from);
        if (from > text_.size()) return false;
        window = kFirstWindow;
        continue;
      }
      const bool may_grow = result == PCRE2_ERROR_PARTIAL || (result == PCRE2_ERROR_MATCHLIMIT && !is_whole);
      if (!may_grow) return false;
      if (result == PCRE2_ERROR_PARTIAL) from = std::max(from, range[0]);
      window *= 4;
      if (kStepsPerByte * window > budget_) return false;
      budget_ -= kStepsPerByte * window;
    }
  }

 private:
  static constexpr size_t kFirstWindow = 256, kStepsPerByte = 2;
  static constexpr size_t kMaxWork = size_t{1} << 31;

  // A step may run over all of the window.
  static size_t steps_in(size_t window) {
    return std::min(kStepsPerByte * std::max(window, kFirstWindow), kMaxWork / std::max<size_t>(window, 1));
  }

  size_t window_end(size_t from, size_t window) const {
    if (window >= text_.size() - from) return text_.size();
    size_t end = from + window;
    while ((static_cast<unsigned char>(text_[end]) & 0xC0) == 0x80) --end;  // not within a character
    return end;
  }

  size_t next_char(size_t pos) const {
    return pos < text_.size() ? pos + utf8_length_by_lead(static_cast<unsigned char>(text_[pos])) : pos + 1;
  }

  int run(size_t from, size_t end, size_t steps, uint32_t options) {
    pcre2_set_match_limit(context_, static_cast<uint32_t>(std::min<size_t>(steps, UINT32_MAX)));
    const auto match = [&] {
      return pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text_.data()), end, from,
                         PCRE2_NO_UTF_CHECK | options, data_, context_);
    };
    int result = match();
    // The stack of compiled code starts small.
    if (result == PCRE2_ERROR_JIT_STACKLIMIT && stack_ == nullptr) {
      stack_ = pcre2_jit_stack_create(size_t{32} << 10, size_t{64} << 20, nullptr);
      pcre2_jit_stack_assign(context_, nullptr, stack_);
      result = match();
    }
    return result;
  }

  const pcre2_code* code_;
  std::string_view text_;
  size_t budget_;
  pcre2_match_data* data_;
  pcre2_match_context* context_;
  pcre2_jit_stack* stack_ = nullptr;
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
  splitter.regex_ = std::make_shared<Regex>(compiled);
  uint32_t references = 0;
  pcre2_pattern_info(compiled, PCRE2_INFO_BACKREFMAX, &references);
  if (references > 0) {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("the split expression {:?} refers back to a group, which has no bound on its time",
                    p.pattern),
        {}};
  }
  // Where JIT is missing, matching interprets.
  pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
  return splitter;
}

// Collects matches in ascending order and fills in what lies between.
class Splitter::Matches {
 public:
  Matches(std::vector<Match>& all, bool with_empty) : with_empty_(with_empty), all_(all) {}
  void add(size_t begin, size_t end) {
    finish(begin);
    if (end > begin || with_empty_) all_.push_back({begin, end, true});
    done_ = end;
  }
  void finish(size_t size) {
    if (size > done_) all_.push_back({done_, size, false});
  }
  const bool with_empty_;

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
  Search search(regex_->code, text);
  size_t begin = 0, end = 0;
  std::optional<size_t> last_end;
  const size_t stop = text.size() + (matches.with_empty_ && !text.empty() ? 1 : 0);
  for (size_t from = 0; from < stop && search.find(from, &begin, &end);) {
    if (end < begin || begin < from) break;  // \K inside a look-around
    // Nothing is found twice at one place: no empty match follows a match directly.
    if (end > begin || end != last_end) matches.add(begin, end);
    last_end = from = end;
    if (end > begin) continue;
    // An empty match is a place to cut (as in "(?=...)"), and the search moves on by one character.
    if (end == text.size()) break;
    from += utf8_length_by_lead(static_cast<unsigned char>(text[end]));
  }
}

std::vector<Splitter::Match> Splitter::matches(std::string_view text, bool with_empty) const {
  std::vector<Match> all;
  Matches matches(all, with_empty);
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
