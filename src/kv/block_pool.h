// BlockPool: who holds which block of one KV group. A block is free, used (it has owners), or cached:
// registered in the prefix tree without an owner, and so findable until its place is needed. The least
// recently released goes first.
//
// One owner thread. Invariants: num_free + num_cached + num_used = num_blocks; only registered blocks are
// cached; a release without an owner aborts.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "kv/step_batch.h"

namespace tercet::kv {

class BlockPool {
 public:
  explicit BlockPool(int num_blocks);

  struct Allocation {
    BlockId id;
    bool evicted;  // the block was cached: the prefix tree must forget it
  };
  // A block with one owner and without registration: a free one, else the cached one released longest ago.
  // nullopt when all are used.
  std::optional<Allocation> allocate();

  // Adds an owner to a used or cached block.
  void retain(BlockId id);
  // Removes an owner. Without owners a registered block becomes cached, another one free.
  void release(BlockId id);

  // Marks a used block as one that the prefix tree can find. Its contents never change from here on.
  void set_registered(BlockId id);

  int num_blocks() const { return static_cast<int>(blocks_.size()); }
  int num_free() const { return static_cast<int>(free_.size()); }
  int num_cached() const { return num_cached_; }
  int num_available() const { return num_free() + num_cached_; }
  int num_used() const { return num_blocks() - num_available(); }
  int refcount(BlockId id) const { return at(id).refcount; }
  bool registered(BlockId id) const { return at(id).registered; }

  // The blocks handed out by allocate() since the last call, each once. The backend zeroes them before use.
  std::vector<BlockId> take_blocks_to_zero();

 private:
  struct Block {
    int refcount = 0;
    bool registered = false;
    bool to_zero = false;
    BlockId older = kNoBlock;  // neighbours in the list of cached blocks
    BlockId newer = kNoBlock;
  };
  const Block& at(BlockId id) const;
  Block& at(BlockId id) { return const_cast<Block&>(std::as_const(*this).at(id)); }
  void push_newest(BlockId id);
  void unlink(BlockId id);

  std::vector<Block> blocks_;
  std::vector<BlockId> free_;  // a stack
  std::vector<BlockId> to_zero_;
  BlockId oldest_ = kNoBlock;
  BlockId newest_ = kNoBlock;
  int num_cached_ = 0;
};

}  // namespace tercet::kv
