// MarkedString: bytes, each marked as written by the template or come from the user. Operations on strings
// carry the marks along, so that in a rendered prompt a special token's text counts as the token only where
// the template put it.
//
// A plain value. Invariant: template_spans() are sorted, disjoint, not adjacent and not empty.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tercet::text::jinja {

enum class Origin { kUser, kTemplate };

class MarkedString {
 public:
  struct Span {
    size_t begin;
    size_t end;
    bool operator==(const Span&) const = default;
  };

  MarkedString() = default;
  MarkedString(std::string bytes, Origin origin);

  void append(std::string_view bytes, Origin origin);
  void append(const MarkedString& other);
  // Appends bytes [begin, end) of `other`, which must not be this string.
  void append(const MarkedString& other, size_t begin, size_t end);

  MarkedString slice(size_t begin, size_t end) const;
  // The origin of one byte, in O(log spans).
  Origin origin_at(size_t position) const;

  const std::string& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  const std::vector<Span>& template_spans() const { return template_spans_; }

 private:
  void mark(size_t begin, size_t end);
  std::string bytes_;
  std::vector<Span> template_spans_;
};

}  // namespace tercet::text::jinja
