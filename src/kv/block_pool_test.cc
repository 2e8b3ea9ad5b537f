#include "kv/block_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tercet::kv {
namespace {

using testing::UnorderedElementsAre;

BlockId cached_block(BlockPool& pool) {
  const BlockId id = pool.allocate()->id;
  pool.set_registered(id);
  pool.release(id);
  return id;
}

TEST(BlockPool, CountsFreeCachedAndUsedBlocks) {
  BlockPool pool(3);
  EXPECT_EQ(pool.num_free(), 3);
  const BlockId id = pool.allocate()->id;
  EXPECT_EQ(pool.num_used(), 1);
  pool.set_registered(id);
  pool.release(id);
  EXPECT_EQ(pool.num_free(), 2);
  EXPECT_EQ(pool.num_cached(), 1);
  EXPECT_EQ(pool.num_available(), 3);
}

TEST(BlockPool, FreesABlockWithItsLastOwner) {
  BlockPool pool(1);
  const BlockId id = pool.allocate()->id;
  pool.retain(id);
  pool.release(id);
  EXPECT_FALSE(pool.allocate().has_value());
  pool.release(id);
  EXPECT_EQ(pool.allocate()->id, id);
}

TEST(BlockPool, EvictsCachedBlocksOnlyWhenNoneIsFreeAndTheLeastRecentlyReleasedFirst) {
  BlockPool pool(3);
  const BlockId first = cached_block(pool);
  const BlockId second = cached_block(pool);
  const auto free_one = pool.allocate();
  EXPECT_FALSE(free_one->evicted);
  pool.retain(first);
  pool.release(first);  // now `second` is the older one
  const auto evicted = pool.allocate();
  EXPECT_TRUE(evicted->evicted);
  EXPECT_EQ(evicted->id, second);
  EXPECT_FALSE(pool.registered(second));
  EXPECT_EQ(pool.allocate()->id, first);
  EXPECT_FALSE(pool.allocate().has_value());
}

TEST(BlockPool, RetainTakesACachedBlockFromTheMiddleOfTheLine) {
  BlockPool pool(3);
  const BlockId a = cached_block(pool), b = pool.allocate()->id, c = pool.allocate()->id;
  for (const BlockId id : {b, c}) {
    pool.set_registered(id);
    pool.release(id);
  }
  pool.retain(b);
  EXPECT_EQ(pool.allocate()->id, a);
  EXPECT_EQ(pool.allocate()->id, c);
  EXPECT_FALSE(pool.allocate().has_value());
  EXPECT_EQ(pool.refcount(b), 1);
}

TEST(BlockPool, ListsEachNewlyAllocatedBlockOnceForZeroing) {
  BlockPool pool(2);
  const BlockId a = pool.allocate()->id;
  pool.release(a);
  const BlockId again = pool.allocate()->id;
  const BlockId b = pool.allocate()->id;
  EXPECT_EQ(again, a);
  EXPECT_THAT(pool.take_blocks_to_zero(), UnorderedElementsAre(a, b));
  EXPECT_TRUE(pool.take_blocks_to_zero().empty());
  pool.release(b);
  pool.allocate();
  EXPECT_THAT(pool.take_blocks_to_zero(), UnorderedElementsAre(b));
}

TEST(BlockPool, ARetainedCachedBlockIsNotZeroed) {
  BlockPool pool(1);
  const BlockId id = cached_block(pool);
  pool.take_blocks_to_zero();
  pool.retain(id);
  EXPECT_TRUE(pool.take_blocks_to_zero().empty());
}

TEST(BlockPoolDeathTest, DoubleFreeAborts) {
  BlockPool pool(2);
  const BlockId id = pool.allocate()->id;
  pool.release(id);
  EXPECT_DEATH(pool.release(id), "check failed");
  const BlockId cached = cached_block(pool);
  EXPECT_DEATH(pool.release(cached), "check failed");
}

TEST(BlockPoolDeathTest, MisuseAborts) {
  BlockPool pool(2);
  EXPECT_DEATH(pool.retain(0), "check failed");  // free
  EXPECT_DEATH(pool.release(2), "check failed");
  EXPECT_DEATH(pool.release(kNoBlock), "check failed");
  EXPECT_DEATH(pool.set_registered(1), "check failed");
}

}  // namespace
}  // namespace tercet::kv
