// The merge loop that byte-pair encoding and SentencePiece's "llama" model share: of all adjacent symbols
// that may merge, always the pair of best priority, the leftmost of equals. A heap and a linked list: O(n log
// n) in the symbols.
#pragma once

#include <algorithm>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/check.h"
#include "text/unicode.h"
#include "text/vocabulary.h"

namespace tercet::text {

// A part of a word. `bytes` of it begin at `begin` in the word; token kNoToken: no token has its text.
struct Symbol {
  TokenId token = kNoToken;
  uint32_t begin = 0;
  uint32_t bytes = 0;
};

// What a pair becomes. Lower priorities merge first.
struct Merge {
  uint32_t priority = 0;
  TokenId token = kNoToken;
};
inline constexpr Merge kNoMerge = {};

// Memory that the words of one text share, and how much work they took.
struct MergeScratch {
  struct Node {
    int32_t previous, next;
    Merge with_next;  // token kNoToken: the pair does not merge
  };
  struct Candidate {
    uint64_t key;  // priority in the high half, left position in the low one
    bool operator>(const Candidate& other) const { return key > other.key; }
  };
  std::vector<Symbol> symbols;
  std::vector<Node> nodes;
  std::vector<Candidate> heap;
  uint64_t steps = 0;  // symbols, pair look-ups and heap operations so far
};

// Merges scratch.symbols in place; what remains is compacted to the front. `merge_of(left, right)` returns
// the Merge of two adjacent symbols, kNoMerge when they do not merge.
template <class MergeOf>
void merge_symbols(MergeScratch& scratch, const MergeOf& merge_of) {
  std::vector<Symbol>& symbols = scratch.symbols;
  TERCET_CHECK(symbols.size() < static_cast<size_t>(INT32_MAX));
  const auto size = static_cast<int32_t>(symbols.size());
  auto& nodes = scratch.nodes;
  auto& heap = scratch.heap;
  nodes.resize(symbols.size());
  heap.clear();

  const auto candidate_at = [&](int32_t left) {
    Merge merge = kNoMerge;
    if (nodes[left].next < size) {
      ++scratch.steps;
      merge = merge_of(symbols[left], symbols[nodes[left].next]);
    }
    nodes[left].with_next = merge;
    return merge.token != kNoToken;
  };
  const auto key_of = [&](int32_t left) {
    return static_cast<uint64_t>(nodes[left].with_next.priority) << 32 | static_cast<uint32_t>(left);
  };
  for (int32_t i = 0; i < size; ++i) {
    nodes[i] = {i - 1, i + 1, kNoMerge};
    if (candidate_at(i)) heap.push_back({key_of(i)});
  }
  scratch.steps += symbols.size();
  std::make_heap(heap.begin(), heap.end(), std::greater<>());

  const auto push = [&](int32_t left) {
    if (!candidate_at(left)) return;
    heap.push_back({key_of(left)});
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    ++scratch.steps;
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const uint64_t key = heap.back().key;
    heap.pop_back();
    const auto left = static_cast<int32_t>(key & 0xFFFFFFFF);
    // A symbol that was merged away, or whose pair is another one by now, has no merge under this key.
    if (nodes[left].with_next.token == kNoToken || key_of(left) != key) continue;
    const int32_t right = nodes[left].next;
    symbols[left].token = nodes[left].with_next.token;
    symbols[left].bytes += symbols[right].bytes;
    nodes[right].with_next = kNoMerge;
    symbols[right].bytes = 0;
    nodes[left].next = nodes[right].next;
    if (nodes[left].next < size) nodes[nodes[left].next].previous = left;
    push(left);
    if (nodes[left].previous >= 0) push(nodes[left].previous);
  }
  size_t kept = 0;
  for (int32_t i = 0; i < size; i = nodes[i].next) symbols[kept++] = symbols[i];
  symbols.resize(kept);
}

// Places where a text may be cut into words that merge independently: before a U+2581 whose preceding byte
// stands before a U+2581 in no token, for then no token spans the place. The text is valid UTF-8.
class SpaceCuts {
 public:
  explicit SpaceCuts(const Vocabulary& vocabulary) {
    for (size_t id = 0; id < vocabulary.size(); ++id) {
      const std::string_view text = vocabulary.text(static_cast<TokenId>(id));
      for (size_t at = text.find(kMetaspace, 1); at != text.npos; at = text.find(kMetaspace, at + 1)) {
        joined_.set(static_cast<unsigned char>(text[at - 1]));
      }
    }
  }

  template <class Visit>
  void for_each_word(std::string_view text, const Visit& visit) const {
    size_t begin = 0;
    for (size_t at = text.find(kMetaspace, 1); at != text.npos;
         at = text.find(kMetaspace, at + kMetaspace.size())) {
      if (joined_[static_cast<unsigned char>(text[at - 1])]) continue;
      visit(text.substr(begin, at - begin));
      begin = at;
    }
    if (begin < text.size()) visit(text.substr(begin));
  }

 private:
  std::bitset<256> joined_;  // bytes directly before a U+2581 in some token
};

// Whether the merge loop turns a token's own text back into that one token: then a word equal to it needs no
// merging. Found out at the first use of each token and remembered. Safe from any thread (every thread finds
// the same).
class SelfMergingCache {
 public:
  explicit SelfMergingCache(size_t tokens) : states_(tokens) {}
  template <class Compute>
  bool get(TokenId token, const Compute& compute) const {
    const auto i = static_cast<size_t>(token);
    const std::atomic_ref<uint8_t> state(states_[i]);
    uint8_t known = state.load(std::memory_order_relaxed);
    if (known == kUnknown) {
      known = compute() ? kYes : kNo;
      state.store(known, std::memory_order_relaxed);
    }
    return known == kYes;
  }

 private:
  static constexpr uint8_t kUnknown = 0, kYes = 1, kNo = 2;
  mutable std::vector<uint8_t> states_;
};

}  // namespace tercet::text
