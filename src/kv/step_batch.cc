#include "kv/step_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tercet::kv {
namespace {

std::string check_rows(const StepBatch& batch) {
  if (batch.positions.size() != batch.tokens.size()) {
    return fmt::format("{} positions for {} tokens", batch.positions.size(), batch.tokens.size());
  }
  int next_row = 0;
  for (int s = 0; s < batch.num_sequences(); ++s) {
    const SequenceRows& rows = batch.sequences[static_cast<size_t>(s)];
    if (rows.first_row != next_row)
      return fmt::format("sequence {}: first row {}, not {}", s, rows.first_row, next_row);
    if (rows.num_rows < 1 || rows.num_rows > batch.num_rows() - next_row) {
      return fmt::format("sequence {}: {} rows from row {} of {}", s, rows.num_rows, next_row,
                         batch.num_rows());
    }
    if (rows.context_len < 0) return fmt::format("sequence {}: context length {}", s, rows.context_len);
    for (int i = 0; i < rows.num_rows; ++i) {
      const int position = batch.positions[static_cast<size_t>(next_row + i)];
      if (position != rows.context_len + i) {
        return fmt::format("row {}: position {}, not {}", next_row + i, position, rows.context_len + i);
      }
    }
    next_row += rows.num_rows;
  }
  if (next_row != batch.num_rows())
    return fmt::format("sequences cover {} of {} rows", next_row, batch.num_rows());
  for (const int32_t token : batch.tokens) {
    if (token < 0) return fmt::format("token {}", token);
  }
  for (const auto* rows : {&batch.wanted_rows, &batch.hidden_rows}) {
    for (size_t i = 0; i < rows->size(); ++i) {
      const int row = (*rows)[i];
      if (row < 0 || row >= batch.num_rows() || (i > 0 && row <= (*rows)[i - 1]))
        return fmt::format("wanted row {} (entry {}) of {} rows", row, i, batch.num_rows());
    }
  }
  return {};
}

std::string check_starts(const GroupTables& tables, int num_sequences) {
  const auto& starts = tables.starts;
  if (starts.size() != static_cast<size_t>(num_sequences) + 1) {
    return fmt::format("{} starts for {} sequences", starts.size(), num_sequences);
  }
  if (starts.front() != 0 || starts.back() != static_cast<int32_t>(tables.blocks.size()) ||
      !std::is_sorted(starts.begin(), starts.end())) {
    return "starts do not ascend from 0 to the number of entries";
  }
  return {};
}

std::string check_ids(const GroupTables& tables, int num_blocks) {
  for (const BlockId id : tables.blocks) {
    if (id != kNoBlock && (id < 0 || id >= num_blocks)) return fmt::format("block {} of {}", id, num_blocks);
  }
  std::vector<BlockId> zeroed = tables.blocks_to_zero;
  std::sort(zeroed.begin(), zeroed.end());
  for (size_t i = 0; i < zeroed.size(); ++i) {
    if (zeroed[i] < 0 || zeroed[i] >= num_blocks)
      return fmt::format("block to zero {} of {}", zeroed[i], num_blocks);
    if (i > 0 && zeroed[i] == zeroed[i - 1]) return fmt::format("block {} is to be zeroed twice", zeroed[i]);
  }
  return {};
}

// Every block that is read is there, and every block that is written has one user and nothing to lose.
std::string check_blocks(const StepBatch& batch, int group, const KvGroupSpec& spec) {
  std::map<BlockId, int> users;
  const GroupTables& tables = batch.groups[static_cast<size_t>(group)];
  for (const BlockId id : tables.blocks) ++users[id];
  const auto zeroed = [&](BlockId id) {
    return std::find(tables.blocks_to_zero.begin(), tables.blocks_to_zero.end(), id) !=
           tables.blocks_to_zero.end();
  };
  for (int s = 0; s < batch.num_sequences(); ++s) {
    const SequenceRows& rows = batch.sequences[static_cast<size_t>(s)];
    const std::span<const BlockId> table = batch.table(group, s);
    const int last = (rows.context_len + rows.num_rows - 1) / kBlockTokens;
    if (last >= static_cast<int>(table.size())) {
      return fmt::format("sequence {}: position {} is beyond its table of {} blocks", s,
                         rows.context_len + rows.num_rows - 1, table.size());
    }
    for (int i = first_position_read(spec, rows.context_len) / kBlockTokens; i <= last; ++i) {
      const BlockId id = table[static_cast<size_t>(i)];
      if (id == kNoBlock) return fmt::format("sequence {}: block {} of its table is read and not held", s, i);
      const bool written = i >= rows.context_len / kBlockTokens;
      const bool has_context = i < blocks_for_tokens(rows.context_len);
      if (written && users[id] > 1)
        return fmt::format("sequence {}: writes block {}, which others hold", s, id);
      if (has_context && zeroed(id))
        return fmt::format("sequence {}: reads block {}, which is to be zeroed", s, id);
    }
  }
  return {};
}

}  // namespace

std::string StepBatch::check(std::span<const KvGroupSpec> specs) const {
  if (std::string problem = check_rows(*this); !problem.empty()) return problem;
  if (groups.size() != specs.size()) return fmt::format("{} groups, not {}", groups.size(), specs.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    std::string problem = check_starts(groups[g], num_sequences());
    if (problem.empty()) problem = check_ids(groups[g], specs[g].num_blocks);
    if (problem.empty()) problem = check_blocks(*this, static_cast<int>(g), specs[g]);
    if (!problem.empty()) return fmt::format("group {}: {}", g, problem);
  }
  return {};
}

}  // namespace tercet::kv
