#include "base/random.h"

#include "base/math.h"
#include "base/vector_clones.h"

namespace tercet {

namespace {

// Multipliers, Weyl increments and number of rounds of the paper.
constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

using Key = std::array<uint32_t, 2>;

inline void philox_round(uint32_t& c0, uint32_t& c1, uint32_t& c2, uint32_t& c3, uint32_t k0, uint32_t k1) {
  uint64_t product0 = kMultiplier0 * c0;
  uint64_t product1 = kMultiplier1 * c2;
  c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ k0;
  c1 = static_cast<uint32_t>(product1);
  c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ k1;
  c3 = static_cast<uint32_t>(product0);
}

PhiloxBlock counter_of(RandomPurpose purpose, uint64_t position, uint32_t group) {
  return {group, static_cast<uint32_t>(purpose), static_cast<uint32_t>(position),
          static_cast<uint32_t>(position >> 32)};
}

Key key_of(uint64_t seed) { return {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}; }

// The blocks of kLanes consecutive groups: the same rounds, a lane per group.
constexpr int kLanes = 32;

TERCET_VECTOR_CLONES
void philox_lanes(PhiloxBlock counter, Key key, PhiloxBlock* blocks) {
  uint32_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
  for (int j = 0; j < kLanes; ++j) {
    c0[j] = counter[0] + static_cast<uint32_t>(j);
    c1[j] = counter[1];
    c2[j] = counter[2];
    c3[j] = counter[3];
  }
  for (int round = 0; round < kRounds; ++round) {
    for (int j = 0; j < kLanes; ++j) philox_round(c0[j], c1[j], c2[j], c3[j], key[0], key[1]);
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  for (int j = 0; j < kLanes; ++j) blocks[j] = {c0[j], c1[j], c2[j], c3[j]};
}

}  // namespace

PhiloxBlock philox4x32(PhiloxBlock counter, Key key) {
  auto [c0, c1, c2, c3] = counter;
  for (int round = 0; round < kRounds; ++round) {
    philox_round(c0, c1, c2, c3, key[0], key[1]);
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return {c0, c1, c2, c3};
}

PhiloxBlock random_block(uint64_t seed, RandomPurpose purpose, uint64_t position, uint32_t group) {
  return philox4x32(counter_of(purpose, position, group), key_of(seed));
}

void random_blocks(uint64_t seed, RandomPurpose purpose, uint64_t position, uint32_t first_group,
                   std::span<PhiloxBlock> blocks) {
  size_t i = 0;
  for (; i + kLanes <= blocks.size(); i += kLanes) {
    philox_lanes(counter_of(purpose, position, first_group + static_cast<uint32_t>(i)), key_of(seed),
                 &blocks[i]);
  }
  for (; i < blocks.size(); ++i) {
    blocks[i] = random_block(seed, purpose, position, first_group + static_cast<uint32_t>(i));
  }
}

uint32_t random_u32(uint64_t seed, RandomPurpose purpose, uint64_t position, uint32_t token) {
  return random_block(seed, purpose, position, token / 4)[token % 4];
}

uint64_t hash_seed(uint64_t seed, uint64_t choice) {
  PhiloxBlock block = random_block(seed, RandomPurpose::kChoice, choice, 0);
  return block[0] | static_cast<uint64_t>(block[1]) << 32;
}

float gumbel(uint32_t x) {
  double u = (x + 0.5) * 0x1p-32;
  return static_cast<float>(-math::log(-math::log(u)));
}

}  // namespace tercet
