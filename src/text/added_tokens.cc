#include "text/added_tokens.h"

#include <algorithm>
#include <functional>
#include <set>

#include "text/unicode.h"

namespace tercet::text {
namespace {

bool is_ascii_space(char c) { return c == ' ' || (c >= 9 && c <= 13); }

// llama.cpp strips ASCII white space only.
std::string_view strip_left_ascii(std::string_view text) {
  while (!text.empty() && is_ascii_space(text.front())) text.remove_prefix(1);
  return text;
}

std::string_view strip_right_ascii(std::string_view text) {
  while (!text.empty() && is_ascii_space(text.back())) text.remove_suffix(1);
  return text;
}

// The character that ends at `end` > 0; invalid bytes count as one character each.
DecodedChar char_before(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && end - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  const DecodedChar c = decode_utf8(text, begin);
  return begin + c.length == end ? c : DecodedChar{kReplacementCharacter, 1};
}

size_t skip_spaces_left(std::string_view text, size_t from, size_t end) {
  while (end > from) {
    const DecodedChar c = char_before(text, end);
    if (!(char_class(c.code_point) & kSpace)) break;
    end -= c.length;
  }
  return end;
}

size_t skip_spaces_right(std::string_view text, size_t begin) {
  while (begin < text.size()) {
    const DecodedChar c = decode_utf8(text, begin);
    if (c.length == 0 || !(char_class(c.code_point) & kSpace)) break;
    begin += c.length;
  }
  return begin;
}

bool is_word_char(char32_t c) { return (char_class(c) & kWordChar) != 0; }

bool touches_word(std::string_view text, size_t begin, size_t end) {
  return (begin > 0 && is_word_char(char_before(text, begin).code_point)) ||
         (end < text.size() && is_word_char(decode_utf8(text, end).code_point));
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens, MatchOrder order)
    : tokens_(std::move(tokens)), order_(order) {
  std::stable_sort(tokens_.begin(), tokens_.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.content < b.content; });
  std::vector<AddedToken> kept;
  for (AddedToken& token : tokens_) {
    if (token.content.empty()) continue;
    if (!kept.empty() && kept.back().content == token.content) kept.pop_back();
    strips_ |= token.lstrip || token.rstrip;
    has_special_ |= token.special;
    kept.push_back(std::move(token));
  }
  tokens_ = std::move(kept);
  for (const AddedToken& token : tokens_)
    ++first_byte_[static_cast<size_t>(static_cast<unsigned char>(token.content[0])) + 1];
  for (size_t byte = 0; byte < 256; ++byte) first_byte_[byte + 1] += first_byte_[byte];
}

const AddedToken* AddedTokenMatcher::find(std::string_view content) const {
  const auto at =
      std::lower_bound(tokens_.begin(), tokens_.end(), content,
                       [](const AddedToken& token, std::string_view c) { return token.content < c; });
  return at != tokens_.end() && at->content == content ? &*at : nullptr;
}

template <class Visit>
void AddedTokenMatcher::for_each_at(std::string_view text, size_t pos, const Visit& visit) const {
  const auto first = static_cast<unsigned char>(text[pos]);
  if (first_byte_[first] == first_byte_[first + 1]) return;
  // [low, high): the tokens that share the first `depth` bytes with the text. They are sorted, so each
  // further byte narrows the range by two binary searches.
  auto low = tokens_.begin() + first_byte_[first], high = tokens_.begin() + first_byte_[first + 1];
  for (size_t depth = 0; pos + depth < text.size(); ++depth) {
    const auto byte = static_cast<unsigned char>(text[pos + depth]);
    const auto byte_of = [depth](const AddedToken& token) {
      return static_cast<unsigned char>(token.content[depth]);
    };
    low = std::lower_bound(low, high, byte,
                           [&](const AddedToken& t, unsigned char b) { return byte_of(t) < b; });
    high = std::upper_bound(low, high, byte,
                            [&](unsigned char b, const AddedToken& t) { return b < byte_of(t); });
    if (low == high) return;
    if (low->content.size() == depth + 1) {
      visit(*low);
      if (++low == high) return;
    }
  }
}

void AddedTokenMatcher::split(std::string_view text, const SpecialPlaces& special,
                              std::vector<Fragment>& fragments) const {
  if (text.empty()) return;
  if (tokens_.empty()) return fragments.push_back({text, kNoToken});
  if (order_ == MatchOrder::kLongestFirst) {
    split_longest_first(text, special, fragments);
  } else {
    split_leftmost(text, special, fragments);
  }
}

void AddedTokenMatcher::split_longest_first(std::string_view text, const SpecialPlaces& special,
                                            std::vector<Fragment>& fragments) const {
  if (strips_) return split_in_passes(text, special, fragments);
  constexpr size_t kMaxCluster = 4096;
  // A cluster is a set of occurrences that overlap one another; clusters do not influence each other.
  std::vector<Match> cluster;
  std::vector<bool> taken;
  size_t begin = 0, end = 0, done = 0;
  const auto add = [&](size_t at, size_t length, TokenId id) {
    if (at > done) fragments.push_back({text.substr(done, at - done), kNoToken});
    fragments.push_back({text.substr(at, length), id});
    done = at + length;
  };
  const auto resolve = [&] {
    if (cluster.size() > kMaxCluster) {
      std::vector<Fragment> parts;
      split_in_passes(text.substr(begin, end - begin), special, parts);
      for (const Fragment& part : parts) {
        if (part.id != kNoToken)
          add(static_cast<size_t>(part.text.data() - text.data()), part.text.size(), part.id);
      }
      return;
    }
    std::stable_sort(cluster.begin(), cluster.end(), [](const Match& a, const Match& b) {
      return a.token->content.size() > b.token->content.size();
    });
    taken.assign(end - begin, false);
    // A later, not longer one overlaps an accepted one only if one of its ends lies in that.
    std::erase_if(cluster, [&](const Match& m) {
      if (taken[m.begin - begin] || taken[m.end() - 1 - begin]) return true;
      std::fill_n(taken.begin() + static_cast<ptrdiff_t>(m.begin - begin), m.token->content.size(), true);
      return false;
    });
    std::sort(cluster.begin(), cluster.end(),
              [](const Match& a, const Match& b) { return a.begin < b.begin; });
    for (const Match& m : cluster) add(m.begin, m.token->content.size(), m.token->id);
  };
  for (size_t pos = 0; pos < text.size(); ++pos) {
    for_each_at(text, pos, [&](const AddedToken& token) {
      if (!enabled(token, text.substr(pos), special)) return;
      if (pos >= end) {
        resolve();
        cluster.clear();
        begin = pos;
      }
      if (cluster.size() <= kMaxCluster) cluster.push_back({pos, &token});
      end = std::max(end, pos + token.content.size());
    });
  }
  resolve();
  if (done < text.size()) fragments.push_back({text.substr(done), kNoToken});
}

void AddedTokenMatcher::split_in_passes(std::string_view text, const SpecialPlaces& special,
                                        std::vector<Fragment>& fragments) const {
  std::set<size_t, std::greater<>> lengths;
  for (size_t pos = 0; pos < text.size(); ++pos) {
    for_each_at(text, pos, [&](const AddedToken& token) {
      if (enabled(token, text.substr(pos), special)) lengths.insert(token.content.size());
    });
  }
  std::vector<Fragment> current = {{text, kNoToken}}, next;
  for (const size_t length : lengths) {
    next.clear();
    for (const Fragment& fragment : current) {
      if (fragment.id != kNoToken) {
        next.push_back(fragment);
        continue;
      }
      std::string_view rest = fragment.text;
      for (size_t pos = 0; pos + length <= rest.size();) {
        const AddedToken* found = nullptr;
        for_each_at(rest, pos, [&](const AddedToken& token) {
          if (token.content.size() == length && enabled(token, rest.substr(pos), special)) found = &token;
        });
        if (found == nullptr) {
          ++pos;
          continue;
        }
        std::string_view before = rest.substr(0, pos);
        if (found->lstrip) before = strip_right_ascii(before);
        if (!before.empty()) next.push_back({before, kNoToken});
        next.push_back({rest.substr(pos, length), found->id});
        rest.remove_prefix(pos + length);
        if (found->rstrip) rest = strip_left_ascii(rest);
        pos = 0;
      }
      if (!rest.empty()) next.push_back({rest, kNoToken});
    }
    std::swap(current, next);
  }
  fragments.insert(fragments.end(), current.begin(), current.end());
}

void AddedTokenMatcher::split_leftmost(std::string_view text, const SpecialPlaces& special,
                                       std::vector<Fragment>& fragments) const {
  size_t done = 0;
  for (size_t pos = 0; pos < text.size();) {
    const AddedToken* longest = nullptr;
    for_each_at(text, pos, [&](const AddedToken& token) { longest = &token; });
    if (longest == nullptr) {
      ++pos;
      continue;
    }
    size_t begin = pos, end = pos + longest->content.size();
    // An occurrence that does not count hides the shorter ones inside it. White space that a token takes
    // hides none: a token within is found too.
    pos = end;
    if (!enabled(*longest, text.substr(begin), special) ||
        (longest->single_word && touches_word(text, begin, end)))
      continue;
    if (longest->lstrip) begin = std::max(done, skip_spaces_left(text, done, begin));
    if (longest->rstrip) end = skip_spaces_right(text, end);
    if (begin > done) fragments.push_back({text.substr(done, begin - done), kNoToken});
    // Where the token before has taken all that this one would begin with, it is not there.
    if (begin < end) fragments.push_back({text.substr(begin, end - begin), longest->id});
    done = end;
  }
  if (done < text.size()) fragments.push_back({text.substr(done), kNoToken});
}

}  // namespace tercet::text
