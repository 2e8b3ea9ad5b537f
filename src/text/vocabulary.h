// The strings of a vocabulary and the way back from a string to its id. Immutable once built; safe from any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.h"

namespace tercet::text {

using core::TokenId;
inline constexpr TokenId kNoToken = -1;

// Strings by index, in one allocation.
class StringTable {
 public:
  StringTable() = default;
  explicit StringTable(const std::vector<std::string>& strings);
  size_t size() const { return offsets_.size() - 1; }
  std::string_view operator[](size_t i) const {
    return {bytes_.data() + offsets_[i], static_cast<size_t>(offsets_[i + 1] - offsets_[i])};
  }

 private:
  std::string bytes_;
  std::vector<uint64_t> offsets_ = {0};
};

// Token texts as the model matches them. An empty text is matched by nothing; of equal texts the first
// counts.
class Vocabulary {
 public:
  Vocabulary() = default;
  explicit Vocabulary(const std::vector<std::string>& texts);

  size_t size() const { return texts_.size(); }
  std::string_view text(TokenId id) const { return texts_[static_cast<size_t>(id)]; }
  // kNoToken when no token has this text.
  TokenId find(std::string_view text) const;
  size_t max_text_bytes() const { return max_text_bytes_; }

 private:
  struct Slot {
    uint32_t hash = 0;
    TokenId id = kNoToken;
  };
  StringTable texts_;
  std::vector<Slot> slots_;  // open addressing, at most half full, a power of two
  size_t max_text_bytes_ = 0;
};

// Mixes 8 bytes at a time; `text` may be empty.
uint64_t hash_bytes(std::string_view text);

}  // namespace tercet::text
