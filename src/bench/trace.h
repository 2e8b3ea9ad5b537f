// Traces: when requests came to a deployed service, and how long they were. Read from Mooncake's JSON lines
// (timestamp in ms, input_length, output_length, hash_ids) and Azure's CSV (TIMESTAMP, ContextTokens,
// GeneratedTokens).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tercet::bench {

struct TraceRequest {
  double start = 0;  // seconds after the first request
  int prompt_tokens = 0;
  int new_tokens = 0;
  // Of each block of the prompt, the last one shorter: equal numbers are equal tokens in the same place of
  // equal prompts so far. Empty: nothing is shared.
  std::vector<int64_t> blocks;
};

struct Trace {
  std::vector<TraceRequest> requests;  // in order of time
  int block_tokens = 512;
};

// An error names the line of `where`.
Result<Trace> parse_trace(std::string_view text, const std::string& where);

struct TraceScale {
  double speed = 1;  // times as fast
  int limit = 0;     // the first so many requests; 0: all
  int shrink = 1;    // prompts, answers and blocks are so many times shorter, and at least one token long
};
Trace scaled(Trace trace, const TraceScale& scale);

// Tokens of [kFirstToken, kFirstToken + kNumTokens), which vocabularies have and which none of them treats
// as special.
constexpr int32_t kFirstToken = 256;
constexpr int32_t kNumTokens = 29'000;

// `size` random tokens, a function of the seed.
std::vector<int32_t> random_tokens(uint64_t seed, int size);
// The prompt of a request: its blocks' tokens, or random ones where it has none.
std::vector<int32_t> trace_prompt(const Trace& trace, size_t index);

}  // namespace tercet::bench
