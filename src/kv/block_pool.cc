#include "kv/block_pool.h"

#include "base/check.h"

namespace tercet::kv {

BlockPool::BlockPool(int num_blocks) {
  TERCET_CHECK(num_blocks > 0);
  blocks_.resize(static_cast<size_t>(num_blocks));
  free_.reserve(blocks_.size());
  for (BlockId id = num_blocks - 1; id >= 0; --id) free_.push_back(id);
}

const BlockPool::Block& BlockPool::at(BlockId id) const {
  TERCET_CHECK(id >= 0 && id < num_blocks());
  return blocks_[static_cast<size_t>(id)];
}

std::optional<BlockPool::Allocation> BlockPool::allocate() {
  Allocation allocation{kNoBlock, false};
  if (!free_.empty()) {
    allocation.id = free_.back();
    free_.pop_back();
  } else if (num_cached_ > 0) {
    allocation = {oldest_, true};
    unlink(oldest_);
  } else {
    return std::nullopt;
  }
  Block& block = at(allocation.id);
  TERCET_CHECK(block.refcount == 0 && block.registered == allocation.evicted);
  block.refcount = 1;
  block.registered = false;
  if (!block.to_zero) to_zero_.push_back(allocation.id);
  block.to_zero = true;
  return allocation;
}

void BlockPool::retain(BlockId id) {
  Block& block = at(id);
  TERCET_CHECK(block.refcount > 0 || block.registered);
  if (block.refcount == 0) unlink(id);
  ++block.refcount;
}

void BlockPool::release(BlockId id) {
  Block& block = at(id);
  TERCET_CHECK(block.refcount > 0);
  if (--block.refcount > 0) return;
  if (block.registered) {
    push_newest(id);
  } else {
    free_.push_back(id);
  }
}

void BlockPool::set_registered(BlockId id) {
  Block& block = at(id);
  TERCET_CHECK(block.refcount > 0 && !block.registered);
  block.registered = true;
}

std::vector<BlockId> BlockPool::take_blocks_to_zero() {
  for (const BlockId id : to_zero_) at(id).to_zero = false;
  return std::exchange(to_zero_, {});
}

void BlockPool::push_newest(BlockId id) {
  Block& block = at(id);
  block.older = newest_;
  block.newer = kNoBlock;
  (newest_ == kNoBlock ? oldest_ : at(newest_).newer) = id;
  newest_ = id;
  ++num_cached_;
}

void BlockPool::unlink(BlockId id) {
  const Block& block = at(id);
  (block.older == kNoBlock ? oldest_ : at(block.older).newer) = block.newer;
  (block.newer == kNoBlock ? newest_ : at(block.newer).older) = block.older;
  --num_cached_;
}

}  // namespace tercet::kv
