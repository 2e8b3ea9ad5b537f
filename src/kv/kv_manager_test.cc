#include "kv/kv_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace tercet::kv {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Ne;

KvGroupSpec full(int num_blocks) { return {GroupKind::kFull, 0, num_blocks, {}}; }
KvGroupSpec window(int width, int num_blocks) { return {GroupKind::kSlidingWindow, width, num_blocks, {}}; }

std::vector<int32_t> counting(int n, int32_t first = 0) {
  std::vector<int32_t> tokens(static_cast<size_t>(n));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

// Computes the tokens from where the sequence stands, in chunks.
void compute(KvManager& kv, KvSequence& sequence, std::span<const int32_t> tokens, int chunk = 1 << 20) {
  while (sequence.num_committed < static_cast<int>(tokens.size())) {
    const int n = std::min(chunk, static_cast<int>(tokens.size()) - sequence.num_committed);
    ASSERT_TRUE(kv.reserve(sequence, n));
    kv.commit(sequence, tokens, n);
  }
}

// Takes what is cached and returns its length.
int admit(KvManager& kv, KvSequence& sequence, std::span<const int32_t> tokens) {
  const PrefixMatch match = kv.match(sequence, tokens, static_cast<int>(tokens.size()) - 1);
  kv.admit(sequence, match);
  return match.num_tokens;
}

void check(const KvManager& kv, std::initializer_list<const KvSequence*> sequences) {
  kv.check_consistency(std::span(sequences.begin(), sequences.size()));
}

TEST(KvManager, ReserveFailsWithoutChangeWhenOneGroupIsShort) {
  KvManager kv({full(8), full(2)});
  KvSequence sequence;
  ASSERT_TRUE(kv.reserve(sequence, 20));
  EXPECT_FALSE(kv.reserve(sequence, 40));
  EXPECT_EQ(kv.pool(0).num_used(), 2);
  EXPECT_EQ(sequence.num_reserved, 20);
  check(kv, {&sequence});
}

TEST(KvManager, ABlockIsFoundOnlyAfterItsContentsAreCommitted) {
  KvManager kv({full(8)});
  const auto tokens = counting(40);
  KvSequence first, second;
  ASSERT_TRUE(kv.reserve(first, 40));
  EXPECT_EQ(kv.match(second, tokens, 40).num_tokens, 0);
  kv.commit(first, tokens, 20);
  EXPECT_EQ(kv.match(second, tokens, 40).num_tokens, 16);
  check(kv, {&first});
}

TEST(KvManager, SharesFullBlocksAndKeepsThemFindableAfterTheirOwners) {
  KvManager kv({full(8)});
  const auto tokens = counting(40);
  KvSequence first, second;
  compute(kv, first, tokens);
  EXPECT_EQ(admit(kv, second, tokens), 32);
  EXPECT_EQ(second.tables[0][0], first.tables[0][0]);
  check(kv, {&first, &second});
  kv.release(first);
  kv.release(second);
  EXPECT_EQ(kv.pool(0).num_cached(), 2);
  EXPECT_EQ(admit(kv, first, tokens), 32);
  check(kv, {&first});
}

TEST(KvManager, AtLeastOnePromptTokenIsComputed) {
  KvManager kv({full(8)});
  const auto tokens = counting(32);
  KvSequence first, second;
  compute(kv, first, tokens);
  EXPECT_EQ(admit(kv, second, tokens), 16);
}

// D9: the blocks that a request takes from the cache must not be evicted for its own new ones.
TEST(KvManager, AFullPoolEvictsNothingThatTheNewSequenceReuses) {
  KvManager kv({full(4)});
  KvSequence first, second, third;
  const auto prefix = counting(48), other = counting(16, 1000);
  compute(kv, first, prefix);
  compute(kv, second, other);
  kv.release(first);
  kv.release(second);
  EXPECT_EQ(kv.pool(0).num_free(), 0);
  auto longer = counting(64);
  EXPECT_EQ(admit(kv, third, longer), 48);
  const std::vector<BlockId> reused = third.tables[0];
  compute(kv, third, longer);
  EXPECT_TRUE(std::equal(reused.begin(), reused.end(), third.tables[0].begin()));
  EXPECT_EQ(kv.match(second, other, 16).num_tokens, 0);
  check(kv, {&third});
  EXPECT_FALSE(kv.reserve(third, 1));
}

TEST(KvManager, EvictsTheEndOfAPrefixBeforeItsBeginning) {
  KvManager kv({full(4)});
  KvSequence first, second;
  const auto tokens = counting(64);
  compute(kv, first, tokens);
  kv.release(first);
  compute(kv, second, counting(32, 1000));
  EXPECT_EQ(kv.match(first, tokens, 63).num_tokens, 32);
}

// D12
TEST(KvManager, TwoSequencesThatComputeTheSameBlockInOneStepKeepTheirOwnCopies) {
  KvManager kv({full(8)});
  const auto tokens = counting(32);
  KvSequence first, second, third;
  ASSERT_TRUE(kv.reserve(first, 32));
  ASSERT_TRUE(kv.reserve(second, 32));
  kv.commit(first, tokens, 32);
  kv.commit(second, tokens, 32);
  EXPECT_NE(first.tables[0], second.tables[0]);
  check(kv, {&first, &second});
  kv.release(second);
  EXPECT_EQ(kv.pool(0).num_free(), 6);
  EXPECT_EQ(admit(kv, third, tokens), 16);
  EXPECT_EQ(third.tables[0][0], first.tables[0][0]);
  kv.release(first);
  kv.release(third);
  check(kv, {});
}

// Row D13 of the reports.
TEST(KvManager, DifferentSaltsNeverShareABlock) {
  KvManager kv({full(8), window(32, 8)});
  const auto tokens = counting(48);
  const auto salt = [](std::string_view adapter, std::string_view kv_type, std::string_view cache_salt) {
    const std::string_view parts[] = {adapter, kv_type, cache_salt};
    return make_salt(parts);
  };
  KvSequence first(salt("", "f16", "")), same(salt("", "f16", ""));
  compute(kv, first, tokens);
  EXPECT_EQ(kv.match(same, tokens, 48).num_tokens, 48);
  for (const BlockHash& other :
       {salt("1", "f16", ""), salt("", "int8", ""), salt("", "f16", "alice"), BlockHash{}}) {
    KvSequence sequence(other);
    EXPECT_EQ(kv.match(sequence, tokens, 48).num_tokens, 0);
  }
}

TEST(KvManager, WithoutPrefixCachingNothingIsFound) {
  KvManager kv({full(8)}, /*prefix_caching=*/false);
  const auto tokens = counting(32);
  KvSequence first, second;
  compute(kv, first, tokens);
  EXPECT_EQ(kv.match(second, tokens, 32).num_tokens, 0);
  kv.release(first);
  EXPECT_EQ(kv.pool(0).num_free(), 8);
}

TEST(KvManager, ReleasesBlocksWhollyBeforeTheWindow) {
  KvManager kv({window(17, 8)});
  const auto tokens = counting(33);
  KvSequence sequence;
  compute(kv, sequence, std::span(tokens).first(31));
  EXPECT_THAT(sequence.tables[0], Each(Ne(kNoBlock)));  // position 31 reads [15, 31]
  compute(kv, sequence, std::span(tokens).first(32));
  EXPECT_THAT(sequence.tables[0], ElementsAre(kNoBlock, Ne(kNoBlock)));  // position 32 reads [16, 32]
  EXPECT_EQ(kv.pool(0).num_used(), 1);
  EXPECT_EQ(kv.pool(0).num_cached(), 1);
}

TEST(KvManager, AWindowedSequenceNeverHoldsMoreThanItsPeak) {
  for (const int width : {1, 2, 16, 17, 31, 33, 64}) {
    for (const int chunk : {1, 2, 15, 16, 17, 40}) {
      const KvGroupSpec group = window(width, 64);
      KvManager kv({group});
      const auto tokens = counting(400);
      KvSequence sequence;
      int most = 0;
      while (sequence.num_committed < 400) {
        const int n = std::min(chunk, 400 - sequence.num_committed);
        ASSERT_TRUE(kv.reserve(sequence, n));
        most = std::max(most, kv.pool(0).num_used());
        kv.commit(sequence, tokens, n);
        check(kv, {&sequence});
      }
      EXPECT_LE(most, peak_blocks(group, 400, chunk)) << width << " " << chunk;
      EXPECT_GE(most, peak_blocks(group, 400, chunk) - 1) << width << " " << chunk;
    }
  }
}

TEST(KvManager, APrefixHitNeedsOnlyTheLastBlocksOfAWindow) {
  KvManager kv({full(16), window(17, 4)});
  const auto tokens = counting(100);
  KvSequence first, second;
  compute(kv, first, tokens, 16);
  kv.release(first);
  // The window's pool of 4 holds the last blocks only; a hit at 96 reads positions [80, 96).
  EXPECT_EQ(admit(kv, second, tokens), 96);
  EXPECT_THAT(std::vector(second.tables[1].begin(), second.tables[1].begin() + 5), Each(kNoBlock));
  EXPECT_NE(second.tables[1][5], kNoBlock);
  EXPECT_THAT(second.tables[0], Each(Ne(kNoBlock)));
  check(kv, {&second});
}

TEST(KvManager, APrefixHitMustHoldForEveryGroup) {
  KvManager kv({full(16), window(33, 4)});
  const auto tokens = counting(100), other = counting(64, 1000);
  KvSequence first, second, third;
  compute(kv, first, tokens, 16);
  kv.release(first);
  compute(kv, second, other, 16);  // evicts the window's blocks of `first`
  kv.release(second);
  EXPECT_EQ(kv.match(third, tokens, 99).num_tokens, 0);
  EXPECT_EQ(kv.match(third, std::span(tokens).first(0), 0).num_tokens, 0);
}

TEST(KvManager, FallsBackToAShorterPrefixWhoseWindowIsComplete) {
  KvManager kv({full(16), window(17, 16)});
  auto tokens = counting(80);
  KvSequence first, second, third;
  compute(kv, first, tokens, 16);
  // Shares 48 tokens, then differs.
  std::fill(tokens.begin() + 48, tokens.end(), 7);
  EXPECT_EQ(kv.match(second, tokens, 79).num_tokens, 48);
  kv.admit(second, kv.match(second, tokens, 79));
  compute(kv, second, tokens, 16);
  check(kv, {&first, &second});
}

TEST(KvManager, CostsCountWhatBecomesUnavailable) {
  KvManager kv({full(16), window(17, 16)});
  const auto tokens = counting(64);
  KvSequence first, second;
  compute(kv, first, tokens, 16);
  const PrefixMatch used = kv.match(second, tokens, 63);
  ASSERT_EQ(used.num_tokens, 48);
  // The window's matched block is before the window of `first` already, so cached: taking it uses it up.
  EXPECT_THAT(kv.admission_cost(used, 100, 16), ElementsAre(7 - 3, 3));
  kv.release(first);
  EXPECT_THAT(kv.admission_cost(kv.match(second, tokens, 63), 100, 16), ElementsAre(7, 3));
  kv.admit(second, kv.match(second, tokens, 63));
  EXPECT_THAT(kv.growth_cost(second, 100, 16), ElementsAre(4, 2));
}

TEST(KvManager, CommitReturnsRoomReservedForRejectedDrafts) {
  KvManager kv({full(8)});
  auto tokens = counting(15);
  KvSequence sequence;
  compute(kv, sequence, tokens);
  ASSERT_TRUE(kv.reserve(sequence, 5));
  EXPECT_EQ(kv.pool(0).num_used(), 2);
  tokens.push_back(99);
  kv.commit(sequence, tokens, 1);
  EXPECT_EQ(kv.pool(0).num_used(), 1);
  EXPECT_EQ(sequence.num_reserved, 16);
  check(kv, {&sequence});
}

TEST(KvManager, RewindNeverLeavesARegisteredBlockToBeOverwritten) {
  KvManager kv({full(8)});
  auto tokens = counting(40);
  KvSequence sequence;
  compute(kv, sequence, tokens);
  EXPECT_EQ(kv.rewind(sequence, 36), 36);  // in the last, partial block
  EXPECT_EQ(kv.rewind(sequence, 20), 16);  // in the registered block [16, 32)
  EXPECT_EQ(kv.pool(0).num_cached(), 1);
  for (size_t i = 20; i < tokens.size(); ++i) tokens[i] = 7;
  compute(kv, sequence, tokens);
  check(kv, {&sequence});
  KvSequence with_old_tokens, with_new_tokens;
  EXPECT_EQ(kv.match(with_old_tokens, counting(40), 39).num_tokens, 32);
  EXPECT_EQ(kv.match(with_new_tokens, tokens, 39).num_tokens, 32);
}

TEST(KvManager, RewindStartsOverWhenTheWindowsBlocksAreGone) {
  KvManager kv({full(16), window(17, 8)});
  const auto tokens = counting(100);
  KvSequence sequence;
  compute(kv, sequence, tokens, 16);
  EXPECT_EQ(kv.rewind(sequence, 99), 99);
  EXPECT_EQ(kv.rewind(sequence, 50), 0);
  EXPECT_EQ(kv.pool(0).num_used() + kv.pool(1).num_used(), 0);
  compute(kv, sequence, tokens, 16);
  check(kv, {&sequence});
}

TEST(KvManager, KvMayArriveFromElsewhere) {
  KvManager kv({full(16), window(17, 4)});
  const auto tokens = counting(100);
  KvSequence sequence, other;
  ASSERT_TRUE(kv.reserve_arriving(sequence, 100));
  EXPECT_EQ(kv.pool(0).num_used(), 7);
  EXPECT_EQ(kv.pool(1).num_used(), 2);  // position 100 reads [84, 100]
  EXPECT_EQ(kv.match(other, tokens, 99).num_tokens, 0);
  kv.commit(sequence, tokens, 100);
  check(kv, {&sequence});
  EXPECT_EQ(kv.match(other, tokens, 99).num_tokens, 96);
  ASSERT_TRUE(kv.reserve(sequence, 1));
}

TEST(KvManager, ArrivingKvLetsGoOfCachedBlocksBeforeItsWindow) {
  KvManager kv({full(16), window(17, 8)});
  const auto tokens = counting(128);
  KvSequence first, second;
  compute(kv, first, std::span(tokens).first(64), 16);
  kv.release(first);
  ASSERT_EQ(admit(kv, second, tokens), 64);
  ASSERT_TRUE(kv.reserve_arriving(second, 64));
  EXPECT_EQ(kv.pool(1).num_used(), 1);
  kv.commit(second, tokens, 64);
  check(kv, {&second});
  kv.release(second);
  check(kv, {});
}

TEST(KvManager, NewBlocksAreListedForZeroingAndReusedOnesAreNot) {
  KvManager kv({full(8), full(8)});
  const auto tokens = counting(40);
  KvSequence first, second;
  compute(kv, first, tokens);
  EXPECT_THAT(kv.take_blocks_to_zero(), Each(testing::SizeIs(3)));
  admit(kv, second, tokens);
  compute(kv, second, tokens);
  EXPECT_THAT(kv.take_blocks_to_zero(), Each(testing::SizeIs(1)));
}

}  // namespace
}  // namespace tercet::kv
