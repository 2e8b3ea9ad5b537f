// StepBatch: all that a model and a backend see of one step, in integers. A plain value, built by the
// scheduler, read by everyone else.
//
// Rows are the tokens that the step computes, in one flat array. Sequences tile the rows in the order in
// which they are listed; the rows of one sequence ascend in position. A row at position p reads the keys and
// values of positions [0, p], or (p - W, p] in a group with a sliding window W, through its sequence's block
// table, after the step has written its own rows there.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tercet::kv {

inline constexpr int kBlockTokens = 16;

// Index of a block in the pool of its group.
using BlockId = int32_t;
// A table entry whose block is not held: it lies wholly before the sliding window.
inline constexpr BlockId kNoBlock = -1;

constexpr int blocks_for_tokens(int num_tokens) { return (num_tokens + kBlockTokens - 1) / kBlockTokens; }

enum class GroupKind : uint8_t {
  kFull,           // every position stays readable
  kSlidingWindow,  // a row at position p reads positions (p - window, p]
  kLatent,         // as kFull; a position holds the compressed latent of MLA instead of K and V
};

// A KV group: layers that share one block table and one pool of blocks.
struct KvGroupSpec {
  GroupKind kind = GroupKind::kFull;
  int window = 0;      // positions, for kSlidingWindow only
  int num_blocks = 0;  // in the group's pool
  std::vector<int> layers;
};

// The first position that a row at `position` reads in this group.
constexpr int first_position_read(const KvGroupSpec& group, int position) {
  if (group.kind != GroupKind::kSlidingWindow || position < group.window) return 0;
  return position - group.window + 1;
}

struct SequenceRows {
  int first_row = 0;
  int num_rows = 0;      // query length, at least 1
  int context_len = 0;   // positions in the cache before the step; the position of the first row
  int adapter = 0;       // 0: none
  int rope_variant = 0;  // which of the model's rotary frequencies; the same for all of a sequence's life
};

// The block tables of one KV group: those of all sequences, one after the other.
struct GroupTables {
  std::vector<BlockId> blocks;
  std::vector<int32_t> starts;  // [sequences + 1]: sequence s owns blocks[starts[s], starts[s + 1])
  // Blocks to fill with zeros before anything writes them in or after this step (unordered, each once). Some
  // may belong to no sequence of the step.
  std::vector<BlockId> blocks_to_zero;
};

struct StepBatch {
  std::vector<int32_t> tokens;     // [rows] token ids
  std::vector<int32_t> positions;  // [rows]
  std::vector<SequenceRows> sequences;
  std::vector<GroupTables> groups;   // one for each KV group, in the groups' order
  std::vector<int32_t> wanted_rows;  // rows whose logits are wanted, ascending
  std::vector<int32_t> hidden_rows;  // rows whose last hidden states are wanted, ascending

  int num_rows() const { return static_cast<int>(tokens.size()); }
  int num_sequences() const { return static_cast<int>(sequences.size()); }

  // The block table of a sequence: entry i holds positions [16 i, 16 i + 16). It covers at least the
  // positions up to the sequence's last row; entries beyond may exist.
  std::span<const BlockId> table(int group, int sequence) const {
    const GroupTables& tables = groups[static_cast<size_t>(group)];
    const auto begin = static_cast<size_t>(tables.starts[static_cast<size_t>(sequence)]);
    const auto end = static_cast<size_t>(tables.starts[static_cast<size_t>(sequence) + 1]);
    return std::span(tables.blocks).subspan(begin, end - begin);
  }

  // Empty when every invariant holds; otherwise says which one does not and where. Besides the shapes above:
  // every block that a row reads is held, ids are within the pools, and a block that a sequence writes is in
  // no other sequence's table.
  std::string check(std::span<const KvGroupSpec> specs) const;
};

}  // namespace tercet::kv
