#include "kv/kv_manager.h"

#include <algorithm>

#include "base/check.h"

namespace tercet::kv {
namespace {

// Entries of a table that hold a block: all of them, or in a windowed group a run at the end.
int num_held(const std::vector<BlockId>& table) {
  const auto first_gap = std::find(table.rbegin(), table.rend(), kNoBlock);
  return static_cast<int>(first_gap - table.rbegin());
}

void extend_hashes(KvSequence& sequence, std::span<const int32_t> tokens, int num_blocks) {
  for (size_t i = sequence.hashes.size(); i < static_cast<size_t>(num_blocks); ++i) {
    const BlockHash& parent = i == 0 ? sequence.salt : sequence.hashes[i - 1];
    sequence.hashes.push_back(hash_block(parent, tokens.subspan(i * kBlockTokens, kBlockTokens)));
  }
}

// The longest prefix, in blocks, after which the next position finds all it reads. runs[g][i]: how many
// blocks in a row group g has that end with block i.
int longest_common_prefix(std::span<const KvGroupSpec> groups, const std::vector<std::vector<int>>& runs,
                          int limit) {
  for (int n = limit; n > 0; --n) {
    bool complete = true;
    for (size_t g = 0; g < groups.size(); ++g) {
      const int first = first_position_read(groups[g], n * kBlockTokens) / kBlockTokens;
      complete = complete && runs[g][static_cast<size_t>(n) - 1] >= n - first;
    }
    if (complete) return n;
  }
  return 0;
}

}  // namespace

int peak_blocks(const KvGroupSpec& group, int num_tokens, int max_chunk) {
  const int all = blocks_for_tokens(num_tokens);
  if (group.kind != GroupKind::kSlidingWindow) return all;
  // A chunk's rows read window - 1 positions before it; the worst alignment spreads n positions over this
  // many blocks.
  const int64_t n = int64_t{group.window} - 1 + max_chunk;
  return static_cast<int>(std::min<int64_t>(all, (n + kBlockTokens - 2) / kBlockTokens + 1));
}

int num_shared_tokens(const KvSequence& a, const KvSequence& b) {
  const auto [end, _] = std::ranges::mismatch(a.hashes, b.hashes);
  return static_cast<int>(end - a.hashes.begin()) * kBlockTokens;
}

KvManager::KvManager(std::vector<KvGroupSpec> groups, bool prefix_caching)
    : groups_(std::move(groups)), trees_(groups_.size()), prefix_caching_(prefix_caching) {
  TERCET_CHECK(!groups_.empty());
  for (const KvGroupSpec& group : groups_) {
    TERCET_CHECK((group.kind == GroupKind::kSlidingWindow) == (group.window > 0));
    pools_.emplace_back(group.num_blocks);
  }
}

bool KvManager::fits_alone(int num_tokens, int max_chunk) const {
  return std::all_of(groups_.begin(), groups_.end(), [&](const KvGroupSpec& group) {
    return peak_blocks(group, num_tokens, max_chunk) <= group.num_blocks;
  });
}

PrefixMatch KvManager::match(KvSequence& sequence, std::span<const int32_t> tokens, int max_tokens) const {
  PrefixMatch match;
  match.blocks.resize(groups_.size());
  if (!prefix_caching_) return match;
  int limit = std::clamp(max_tokens, 0, static_cast<int>(tokens.size())) / kBlockTokens;
  extend_hashes(sequence, tokens, static_cast<int>(tokens.size()) / kBlockTokens);

  std::vector<std::vector<int>> runs(groups_.size());
  for (size_t g = 0; g < groups_.size(); ++g) {
    int run = 0;
    for (size_t i = 0; i < static_cast<size_t>(limit); ++i) {
      const BlockId id = trees_[g].find(sequence.hashes[i]);
      if (id == kNoBlock && groups_[g].kind != GroupKind::kSlidingWindow) limit = static_cast<int>(i);
      run = id == kNoBlock ? 0 : run + 1;
      runs[g].push_back(run);
      match.blocks[g].push_back(id);
    }
  }

  const int num_blocks = longest_common_prefix(groups_, runs, limit);
  match.num_tokens = num_blocks * kBlockTokens;
  for (size_t g = 0; g < groups_.size(); ++g) {
    match.blocks[g].resize(static_cast<size_t>(num_blocks));
    const int first = first_position_read(groups_[g], match.num_tokens) / kBlockTokens;
    std::fill_n(match.blocks[g].begin(), first, kNoBlock);
  }
  return match;
}

std::vector<int> KvManager::admission_cost(const PrefixMatch& match, int num_tokens, int max_chunk) const {
  std::vector<int> cost;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const auto idle = std::count_if(match.blocks[g].begin(), match.blocks[g].end(), [&](BlockId id) {
      return id != kNoBlock && pools_[g].refcount(id) == 0;
    });
    const int missing = peak_blocks(groups_[g], num_tokens, max_chunk) - num_held(match.blocks[g]);
    cost.push_back(std::max(missing, 0) + static_cast<int>(idle));
  }
  return cost;
}

std::vector<int> KvManager::growth_cost(const KvSequence& sequence, int num_tokens, int max_chunk) const {
  std::vector<int> cost;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const int held = sequence.tables.empty() ? 0 : num_held(sequence.tables[g]);
    cost.push_back(std::max(peak_blocks(groups_[g], num_tokens, max_chunk) - held, 0));
  }
  return cost;
}

void KvManager::admit(KvSequence& sequence, const PrefixMatch& match) {
  TERCET_CHECK(sequence.num_reserved == 0);
  sequence.tables = match.blocks;
  sequence.num_committed = sequence.num_reserved = match.num_tokens;
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (const BlockId id : match.blocks[g]) {
      if (id != kNoBlock) pools_[g].retain(id);
    }
  }
}

bool KvManager::reserve(KvSequence& sequence, int num_new) {
  return grow(sequence, sequence.num_committed + num_new, sequence.num_committed);
}

bool KvManager::reserve_arriving(KvSequence& sequence, int num_new) {
  const int num_tokens = sequence.num_committed + num_new;
  return grow(sequence, num_tokens, num_tokens);
}

// Room for positions [0, num_tokens), of which only those are needed that a row at next_position or later
// reads.
bool KvManager::grow(KvSequence& sequence, int num_tokens, int next_position) {
  TERCET_CHECK(num_tokens >= sequence.num_committed);
  sequence.tables.resize(groups_.size());
  const int end = blocks_for_tokens(num_tokens);
  const auto first_new = [&](size_t g) {
    return std::max(static_cast<int>(sequence.tables[g].size()),
                    first_position_read(groups_[g], next_position) / kBlockTokens);
  };
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (end - first_new(g) > pools_[g].num_available()) return false;
  }
  drop_before_window(sequence, next_position);
  for (size_t g = 0; g < groups_.size(); ++g) {
    std::vector<BlockId>& table = sequence.tables[g];
    if (static_cast<int>(table.size()) < end) table.resize(static_cast<size_t>(first_new(g)), kNoBlock);
    while (static_cast<int>(table.size()) < end) {
      const auto allocation = pools_[g].allocate();
      TERCET_CHECK(allocation.has_value());
      if (allocation->evicted) trees_[g].erase(allocation->id);
      table.push_back(allocation->id);
    }
  }
  sequence.num_reserved = std::max(sequence.num_reserved, num_tokens);
  return true;
}

void KvManager::commit(KvSequence& sequence, std::span<const int32_t> tokens, int num_new) {
  const int first_block = sequence.num_committed / kBlockTokens;
  TERCET_CHECK(num_new >= 0 && sequence.num_committed + num_new <= sequence.num_reserved);
  TERCET_CHECK(static_cast<int>(tokens.size()) >= sequence.num_committed + num_new);
  sequence.num_committed += num_new;
  register_full_blocks(sequence, tokens, first_block);
  drop_before_window(sequence, sequence.num_committed);
  truncate(sequence, sequence.num_committed);
}

void KvManager::register_full_blocks(KvSequence& sequence, std::span<const int32_t> tokens, int first_block) {
  if (!prefix_caching_) return;
  const int end = sequence.num_committed / kBlockTokens;
  extend_hashes(sequence, tokens, end);
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (auto i = static_cast<size_t>(first_block); i < static_cast<size_t>(end); ++i) {
      const BlockId id = sequence.tables[g][i];
      // Another sequence may have computed the same block meanwhile: each keeps its own, and the first one is
      // found.
      if (id != kNoBlock && trees_[g].insert(sequence.hashes[i], id)) pools_[g].set_registered(id);
    }
  }
}

void KvManager::drop_before_window(KvSequence& sequence, int next_position) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    std::vector<BlockId>& table = sequence.tables[g];
    const int first = first_position_read(groups_[g], next_position) / kBlockTokens;
    for (int i = std::min(first, static_cast<int>(table.size())) - 1; i >= 0; --i) {
      BlockId& id = table[static_cast<size_t>(i)];
      if (id == kNoBlock) break;
      pools_[g].release(id);
      id = kNoBlock;
    }
  }
}

int KvManager::rewind(KvSequence& sequence, int num_tokens) {
  int remaining = std::clamp(num_tokens, 0, sequence.num_committed);
  if (static_cast<size_t>(remaining / kBlockTokens) < sequence.hashes.size()) {
    sequence.hashes.resize(static_cast<size_t>(remaining / kBlockTokens));
  }
  const auto at = [&](size_t g, int i) { return sequence.tables[g][static_cast<size_t>(i)]; };
  if (remaining % kBlockTokens != 0) {
    const int last = remaining / kBlockTokens;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const BlockId id = at(g, last);
      if (id != kNoBlock && pools_[g].registered(id)) remaining = last * kBlockTokens;
    }
  }
  for (size_t g = 0; g < sequence.tables.size(); ++g) {
    const int first = first_position_read(groups_[g], remaining) / kBlockTokens;
    if (first < blocks_for_tokens(remaining) && at(g, first) == kNoBlock) remaining = 0;
  }
  sequence.num_committed = remaining;
  truncate(sequence, remaining);
  return remaining;
}

void KvManager::release(KvSequence& sequence) {
  sequence.num_committed = 0;
  truncate(sequence, 0);
}

// From the end, so that of a prefix's cached blocks the first ones are evicted last.
void KvManager::truncate(KvSequence& sequence, int num_tokens) {
  const auto keep = static_cast<size_t>(blocks_for_tokens(num_tokens));
  for (size_t g = 0; g < sequence.tables.size(); ++g) {
    std::vector<BlockId>& table = sequence.tables[g];
    for (; table.size() > keep; table.pop_back()) {
      if (table.back() != kNoBlock) pools_[g].release(table.back());
    }
  }
  sequence.num_reserved = num_tokens;
}

std::vector<std::vector<BlockId>> KvManager::take_blocks_to_zero() {
  std::vector<std::vector<BlockId>> blocks;
  for (BlockPool& pool : pools_) blocks.push_back(pool.take_blocks_to_zero());
  return blocks;
}

void KvManager::check_consistency(std::span<const KvSequence* const> sequences) const {
  for (size_t g = 0; g < groups_.size(); ++g) {
    const BlockPool& pool = pools_[g];
    std::vector<int> owners(static_cast<size_t>(pool.num_blocks()), 0);
    for (const KvSequence* sequence : sequences) {
      if (sequence->tables.empty()) continue;
      const std::vector<BlockId>& table = sequence->tables[g];
      TERCET_CHECK(static_cast<int>(table.size()) == blocks_for_tokens(sequence->num_reserved));
      TERCET_CHECK(sequence->num_committed <= sequence->num_reserved);
      for (size_t i = 0; i < table.size(); ++i) {
        if (table[i] == kNoBlock) continue;
        ++owners[static_cast<size_t>(table[i])];
        const BlockHash* hash = trees_[g].hash_of(table[i]);
        TERCET_CHECK(hash == nullptr || (i < sequence->hashes.size() && *hash == sequence->hashes[i]));
      }
      const int first = first_position_read(groups_[g], sequence->num_reserved) / kBlockTokens;
      TERCET_CHECK(num_held(table) >= static_cast<int>(table.size()) - first);
    }
    int num_used = 0, num_registered = 0;
    for (BlockId id = 0; id < pool.num_blocks(); ++id) {
      TERCET_CHECK(pool.refcount(id) == owners[static_cast<size_t>(id)]);
      TERCET_CHECK(pool.registered(id) || pool.refcount(id) <= 1);
      TERCET_CHECK(pool.registered(id) == (trees_[g].hash_of(id) != nullptr));
      num_used += pool.refcount(id) > 0;
      num_registered += pool.registered(id);
    }
    TERCET_CHECK(pool.num_used() == num_used);
    TERCET_CHECK(trees_[g].size() == static_cast<size_t>(num_registered));
  }
}

}  // namespace tercet::kv
