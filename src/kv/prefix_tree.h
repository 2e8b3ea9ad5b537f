// PrefixTree: finds the block of a KV group that holds a given 16 tokens after a given prefix. A node of the
// tree is named by a hash chain, hash(i) = SHA-256(hash(i - 1), tokens of block i), whose root is a salt;
// equal hashes mean equal salt and equal tokens all the way from position 0. The tree is therefore a flat
// table from hash to block.
//
// One owner thread. A block is in the tree at most once, and a hash names at most one block.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "kv/step_batch.h"

namespace tercet::kv {

using BlockHash = Sha256Digest;

// The root of a chain, from everything besides the tokens that KV contents depend on or that must keep users
// apart: adapter, KV type, layout, rotary choice, cache_salt. Parts are hashed with their lengths: ("ab",
// "c") is not
// ("a", "bc").
BlockHash make_salt(std::span<const std::string_view> parts);

// `tokens` are the 16 tokens of one block.
BlockHash hash_block(const BlockHash& parent, std::span<const int32_t> tokens);

class PrefixTree {
 public:
  // The block registered under `hash`, or kNoBlock.
  BlockId find(const BlockHash& hash) const;
  // False, and no change, when the hash has a block already.
  bool insert(const BlockHash& hash, BlockId id);
  // Forgets a block that insert() accepted.
  void erase(BlockId id);
  // nullptr when the block is not registered.
  const BlockHash* hash_of(BlockId id) const;
  size_t size() const { return blocks_.size(); }

 private:
  struct FirstBytes {
    size_t operator()(const BlockHash& hash) const {
      size_t bytes;
      std::memcpy(&bytes, hash.data(), sizeof bytes);
      return bytes;
    }
  };
  std::unordered_map<BlockHash, BlockId, FirstBytes> blocks_;
  std::unordered_map<BlockId, BlockHash> hashes_;
};

}  // namespace tercet::kv
