// Which bytes of a text may spell special tokens.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

namespace tercet::text {

// Bytes [begin, end) of a prompt. Special tokens may be recognised only within spans of template text; a user
// who writes "<|im_end|>" gets these ten characters. The spans say nothing else: ordinary text must be
// tokenized across them.
struct TextSpan {
  size_t begin = 0;
  size_t end = 0;
  bool is_template_text = false;
  bool operator==(const TextSpan&) const = default;
};

// Where in a text special tokens count: nowhere, everywhere, or within spans of template text. A view.
class SpecialPlaces {
 public:
  explicit SpecialPlaces(bool everywhere) : everywhere_(everywhere) {}
  // `spans` cover `text` in order.
  SpecialPlaces(std::string_view text, std::span<const TextSpan> spans) : base_(text.data()), spans_(spans) {}

  // Whether a special token may be at `part`, which lies in the text.
  bool contain(std::string_view part) const {
    const TextSpan* span = span_of(part);
    return span != nullptr ? span->is_template_text && end_of(part) <= span->end : everywhere_;
  }
  // True where special tokens may be in the one half of `part` and not in the other.
  bool divide(std::string_view part) const {
    const TextSpan* span = span_of(part);
    return span != nullptr && end_of(part) > span->end;
  }
  // Calls visit(piece) for the pieces of `part` that lie in one span each.
  template <class Visit>
  void for_each_piece(std::string_view part, const Visit& visit) const {
    while (!part.empty()) {
      const TextSpan* span = span_of(part);
      const size_t size = span == nullptr ? part.size() : std::min(part.size(), span->end - begin_of(part));
      visit(part.substr(0, size));
      part.remove_prefix(size);
    }
  }

 private:
  size_t begin_of(std::string_view part) const { return static_cast<size_t>(part.data() - base_); }
  size_t end_of(std::string_view part) const { return begin_of(part) + part.size(); }
  // The span that the first byte of `part` lies in, or nullptr.
  const TextSpan* span_of(std::string_view part) const {
    if (spans_.empty()) return nullptr;
    const auto at = std::upper_bound(spans_.begin(), spans_.end(), begin_of(part),
                                     [](size_t pos, const TextSpan& span) { return pos < span.end; });
    return at != spans_.end() ? &*at : nullptr;
  }

  bool everywhere_ = false;
  const char* base_ = nullptr;
  std::span<const TextSpan> spans_;
};

}  // namespace tercet::text
