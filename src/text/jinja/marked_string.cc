#include "text/jinja/marked_string.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tercet::text::jinja {
namespace {

// The first span that ends after `position`.
auto span_after(const std::vector<MarkedString::Span>& spans, size_t position) {
  return std::upper_bound(spans.begin(), spans.end(), position,
                          [](size_t at, const MarkedString::Span& span) { return at < span.end; });
}

}  // namespace

MarkedString::MarkedString(std::string bytes, Origin origin) : bytes_(std::move(bytes)) {
  if (origin == Origin::kTemplate) mark(0, bytes_.size());
}

void MarkedString::mark(size_t begin, size_t end) {
  if (begin == end) return;
  if (!template_spans_.empty() && template_spans_.back().end == begin) {
    template_spans_.back().end = end;
  } else {
    template_spans_.push_back({begin, end});
  }
}

void MarkedString::append(std::string_view bytes, Origin origin) {
  const size_t begin = bytes_.size();
  bytes_ += bytes;
  if (origin == Origin::kTemplate) mark(begin, bytes_.size());
}

void MarkedString::append(const MarkedString& other) { append(other, 0, other.size()); }

void MarkedString::append(const MarkedString& other, size_t begin, size_t end) {
  TERCET_CHECK(&other != this && begin <= end && end <= other.size());
  const size_t base = bytes_.size();
  bytes_.append(other.bytes_, begin, end - begin);
  for (auto span = span_after(other.template_spans_, begin);
       span != other.template_spans_.end() && span->begin < end; ++span) {
    mark(base + std::max(span->begin, begin) - begin, base + std::min(span->end, end) - begin);
  }
}

MarkedString MarkedString::slice(size_t begin, size_t end) const {
  MarkedString piece;
  piece.append(*this, begin, end);
  return piece;
}

Origin MarkedString::origin_at(size_t position) const {
  const auto span = span_after(template_spans_, position);
  const bool inside = span != template_spans_.end() && span->begin <= position;
  return inside ? Origin::kTemplate : Origin::kUser;
}

}  // namespace tercet::text::jinja
