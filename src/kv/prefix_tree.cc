#include "kv/prefix_tree.h"

#include <bit>

#include "base/check.h"

namespace tercet::kv {

BlockHash make_salt(std::span<const std::string_view> parts) {
  Sha256 hasher;
  hasher.update("tercet.kv.salt");
  for (const std::string_view part : parts) {
    const uint64_t size = part.size();
    hasher.update(std::as_bytes(std::span(&size, 1))).update(part);
  }
  return hasher.finish();
}

BlockHash hash_block(const BlockHash& parent, std::span<const int32_t> tokens) {
  static_assert(std::endian::native == std::endian::little,
                "hashes travel between machines in little-endian order");
  TERCET_CHECK(tokens.size() == kBlockTokens);
  std::array<std::byte, sizeof(BlockHash) + kBlockTokens * sizeof(int32_t)> message;
  std::memcpy(message.data(), parent.data(), parent.size());
  std::memcpy(message.data() + parent.size(), tokens.data(), tokens.size_bytes());
  return sha256(message);
}

BlockId PrefixTree::find(const BlockHash& hash) const {
  const auto found = blocks_.find(hash);
  return found == blocks_.end() ? kNoBlock : found->second;
}

bool PrefixTree::insert(const BlockHash& hash, BlockId id) {
  if (!blocks_.emplace(hash, id).second) return false;
  TERCET_CHECK(hashes_.emplace(id, hash).second);
  return true;
}

void PrefixTree::erase(BlockId id) {
  const auto found = hashes_.find(id);
  TERCET_CHECK(found != hashes_.end());
  blocks_.erase(found->second);
  hashes_.erase(found);
}

const BlockHash* PrefixTree::hash_of(BlockId id) const {
  const auto found = hashes_.find(id);
  return found == hashes_.end() ? nullptr : &found->second;
}

}  // namespace tercet::kv
