#include "kv/prefix_tree.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <string_view>

namespace tercet::kv {
namespace {

std::array<int32_t, kBlockTokens> tokens_from(int32_t first) {
  std::array<int32_t, kBlockTokens> tokens;
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

BlockHash salt(std::initializer_list<std::string_view> parts) {
  return make_salt(std::span(parts.begin(), parts.size()));
}

// Computed with Python's hashlib: sha256(bytes(32) + struct.pack('<16i', *range(16))).
TEST(PrefixTree, HashIsSha256OfParentAndLittleEndianTokens) {
  EXPECT_EQ(to_hex(hash_block(BlockHash{}, tokens_from(0))),
            "aa330374288acbdcb5008f2959fd6df7d265c735fbb9b4b4c42ec2036accd6d3");
}

TEST(PrefixTree, HashDependsOnParentAndOnEveryToken) {
  const BlockHash root = salt({"model"});
  const BlockHash base = hash_block(root, tokens_from(0));
  EXPECT_NE(hash_block(base, tokens_from(0)), base);
  for (size_t i = 0; i < kBlockTokens; ++i) {
    auto tokens = tokens_from(0);
    tokens[i] += 1 << 24;
    EXPECT_NE(hash_block(root, tokens), base) << i;
  }
}

TEST(PrefixTree, SaltKeepsItsPartsApart) {
  EXPECT_NE(salt({"ab", "c"}), salt({"a", "bc"}));
  EXPECT_NE(salt({"a", ""}), salt({"a"}));
  EXPECT_EQ(salt({"a", "b"}), salt({"a", "b"}));
}

TEST(PrefixTree, FindsWhatWasInsertedUntilErased) {
  PrefixTree tree;
  const BlockHash hash = hash_block(salt({}), tokens_from(0));
  EXPECT_EQ(tree.find(hash), kNoBlock);
  EXPECT_TRUE(tree.insert(hash, 7));
  EXPECT_EQ(tree.find(hash), 7);
  EXPECT_EQ(*tree.hash_of(7), hash);
  tree.erase(7);
  EXPECT_EQ(tree.find(hash), kNoBlock);
  EXPECT_EQ(tree.hash_of(7), nullptr);
}

TEST(PrefixTree, KeepsTheFirstBlockOfAHash) {
  PrefixTree tree;
  const BlockHash hash = hash_block(salt({}), tokens_from(0));
  EXPECT_TRUE(tree.insert(hash, 1));
  EXPECT_FALSE(tree.insert(hash, 2));
  EXPECT_EQ(tree.find(hash), 1);
  EXPECT_EQ(tree.size(), 1u);
}

}  // namespace
}  // namespace tercet::kv
