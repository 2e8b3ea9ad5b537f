// KvManager: the block tables of sequences over all KV groups. It finds cached prefixes, hands out blocks,
// registers blocks whose contents are committed, and lets go of blocks that slid out of a window.
//
// A sequence's part is a value, KvSequence, that its owner keeps and passes in; before the owner drops it,
// release(). Shared blocks are full and registered, and registered blocks never change, so nothing is ever
// copied on write.
//
// One owner thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/block_pool.h"
#include "kv/prefix_tree.h"
#include "kv/step_batch.h"

namespace tercet::kv {

struct KvSequence {
  BlockHash salt = {};
  std::vector<BlockHash> hashes;  // the chain over the sequence's full blocks, as far as it was needed
  std::vector<std::vector<BlockId>> tables;  // [groups]; entry i holds positions [16 i, 16 i + 16)
  int num_committed = 0;                     // positions whose KV is computed
  int num_reserved = 0;  // positions that the tables have room for, at least num_committed

  KvSequence() = default;
  explicit KvSequence(const BlockHash& sequence_salt) : salt(sequence_salt) {}
  KvSequence(const KvSequence&) = delete;
  KvSequence& operator=(const KvSequence&) = delete;
  KvSequence(KvSequence&&) = default;
  KvSequence& operator=(KvSequence&&) = default;
};

// How many tokens two sequences begin with alike, in full blocks that both have hashed.
int num_shared_tokens(const KvSequence& a, const KvSequence& b);

// What the prefix cache has for a sequence. Valid until the next call that changes the manager.
struct PrefixMatch {
  int num_tokens = 0;                        // a multiple of 16
  std::vector<std::vector<BlockId>> blocks;  // [groups][num_tokens / 16], kNoBlock before a window
};

// The most blocks of the group that a sequence holds at once on its way to `num_tokens` positions when a step
// computes at most `max_chunk` of them.
int peak_blocks(const KvGroupSpec& group, int num_tokens, int max_chunk);

class KvManager {
 public:
  // Groups must have blocks, and windows where their kind says so.
  explicit KvManager(std::vector<KvGroupSpec> groups, bool prefix_caching = true);

  std::span<const KvGroupSpec> groups() const { return groups_; }
  const BlockPool& pool(int group) const { return pools_[static_cast<size_t>(group)]; }

  // True when a sequence of this size can run if it has every pool for itself.
  bool fits_alone(int num_tokens, int max_chunk) const;

  // The longest cached prefix of `tokens`, at most `max_tokens` long, for which every group has the blocks
  // that the next position reads. Hashes what
  // `sequence.hashes` does not have yet of all of `tokens`.
  PrefixMatch match(KvSequence& sequence, std::span<const int32_t> tokens, int max_tokens) const;
  // Blocks that become unavailable, per group, when a sequence takes the match and then grows to
  // `num_tokens`.
  std::vector<int> admission_cost(const PrefixMatch& match, int num_tokens, int max_chunk) const;
  // Blocks that a sequence may still take, per group, until it has `num_tokens`.
  std::vector<int> growth_cost(const KvSequence& sequence, int num_tokens, int max_chunk) const;

  // Takes the matched blocks. The sequence must be empty; afterwards num_committed is the match's.
  void admit(KvSequence& sequence, const PrefixMatch& match);

  // Makes room for positions up to num_committed + num_new in every group; false, and no change, when one has
  // too few blocks.
  bool reserve(KvSequence& sequence, int num_new);
  // The same for positions that will not be computed here but arrive (from another pool, from a file): a
  // group with a window makes room for what the position after them reads only. commit() them once they are
  // there.
  bool reserve_arriving(KvSequence& sequence, int num_new);

  // Declares the KV of the next `num_new` reserved positions computed. `tokens` holds the sequence's tokens
  // up to there at least. Registers the blocks that are full now, drops those that no later position reads,
  // and returns room reserved beyond.
  void commit(KvSequence& sequence, std::span<const int32_t> tokens, int num_new);

  // Goes back to at most `num_tokens` committed positions, whose successors may get other tokens, and returns
  // how many remain: fewer when the last block is registered (it cannot change) or when a window's earlier
  // blocks are gone.
  int rewind(KvSequence& sequence, int num_tokens);

  // Gives every block back; registered ones stay findable. The sequence is as before admit(), its hashes
  // kept.
  void release(KvSequence& sequence);

  // [groups]: the blocks handed out since the last call. They must be zeroed before anything writes them.
  std::vector<std::vector<BlockId>> take_blocks_to_zero();

  // Aborts unless owners' tables, reference counts and the prefix tree agree. `sequences` are all that hold
  // blocks.
  void check_consistency(std::span<const KvSequence* const> sequences) const;

 private:
  bool grow(KvSequence& sequence, int num_tokens, int next_position);
  void drop_before_window(KvSequence& sequence, int next_position);
  void truncate(KvSequence& sequence, int num_tokens);
  void register_full_blocks(KvSequence& sequence, std::span<const int32_t> tokens, int first_block);

  std::vector<KvGroupSpec> groups_;
  std::vector<BlockPool> pools_;   // [groups]
  std::vector<PrefixTree> trees_;  // [groups]
  bool prefix_caching_;
};

}  // namespace tercet::kv
