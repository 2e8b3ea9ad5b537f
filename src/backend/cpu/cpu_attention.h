// Cuts the attention of a step into tiles and segments for the thread pool. A tile is queries of one sequence
// that share a KV head; its segments of 256 positions merge in ascending order whether one thread walks them
// or many computed them.
#pragma once

#include <vector>

#include "backend/cpu/cpu_kv_store.h"
#include "backend/cpu/kernels.h"
#include "base/thread_pool.h"

namespace tercet::backend {

// Memory that attention keeps between calls.
struct AttentionScratch {
  std::vector<float> values;
  // Queries of an int8 K: [rows, heads, k_dim padded to 4], a scale and the sum of the codes for each.
  std::vector<int8_t> q8;
  std::vector<float> q8_scales;
  std::vector<int> q8_sums;
};

void run_attention(const Kernels& kernels, ThreadPool& threads, const CpuKvStore& store, int layer, Matrix q,
                   const kv::StepBatch& batch, const AttentionSpec& spec, Matrix out,
                   AttentionScratch& scratch);

}  // namespace tercet::backend
