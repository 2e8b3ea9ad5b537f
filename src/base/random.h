// Counter-based random numbers: a pure function of a key and a counter, with no state to carry, save or lose.
// The noise of one token depends on the request's seed, the purpose, the absolute position and the token id,
// and on nothing else: not on the batch, the other candidates, or how many numbers were drawn before.
//
// Generator: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011).
//
// Pure functions; safe from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace tercet {

// What a number is drawn for: numbers of different purposes are independent. The values are part of the
// arithmetic: changing one changes what a seed yields.
enum class RandomPurpose : uint32_t {
  kSample = 0,    // the noise that chooses a token; a draft model uses the same, so that it agrees often
  kDraft = 1,     // a draft's own noise, for verification by rejection
  kAccept = 2,    // accept or reject a drafted token
  kResidual = 3,  // the token in place of a rejected one
  kChoice = 4,    // the seeds of the n choices of a request
};

using PhiloxBlock = std::array<uint32_t, 4>;

PhiloxBlock philox4x32(PhiloxBlock counter, std::array<uint32_t, 2> key);

// The four numbers of tokens 4 * group to 4 * group + 3.
PhiloxBlock random_block(uint64_t seed, RandomPurpose purpose, uint64_t position, uint32_t group);

// The blocks of `blocks.size()` groups from first_group on, with the widest vectors the machine has.
void random_blocks(uint64_t seed, RandomPurpose purpose, uint64_t position, uint32_t first_group,
                   std::span<PhiloxBlock> blocks);

// One number, uniform over all 32-bit values: element token % 4 of block token / 4.
uint32_t random_u32(uint64_t seed, RandomPurpose purpose, uint64_t position, uint32_t token);

// The seed of choice `choice` (from 0) of a request with seed `seed`.
uint64_t hash_seed(uint64_t seed, uint64_t choice);

// Standard Gumbel noise from a uniform 32-bit number: u = (x + 0.5) / 2^32, g = -log(-log u) in double,
// rounded once. Non-decreasing in x; between -3.14 and 22.88.
float gumbel(uint32_t x);

}  // namespace tercet
