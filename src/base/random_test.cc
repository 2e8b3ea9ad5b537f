#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace tercet {
namespace {

// Known answers published with the Random123 library (kat_vectors, philox4x32 10).
TEST(Random, PhiloxKnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, EveryPartOfTheKeyMatters) {
  std::set<uint32_t> seen;
  constexpr uint64_t kBits[] = {0, 1, uint64_t{1} << 31, uint64_t{1} << 32, uint64_t{1} << 63};
  for (uint64_t seed : kBits) {
    for (uint64_t position : kBits) {
      for (auto purpose : {RandomPurpose::kSample, RandomPurpose::kDraft, RandomPurpose::kChoice}) {
        for (uint32_t token : {0u, 1u, 4u, 262'143u}) seen.insert(random_u32(seed, purpose, position, token));
      }
    }
  }
  EXPECT_EQ(seen.size(), 5u * 5 * 3 * 4);
}

TEST(Random, BlockHoldsTheNumbersOfFourTokens) {
  PhiloxBlock block = random_block(11, RandomPurpose::kSample, 5, 3);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(block[i], random_u32(11, RandomPurpose::kSample, 5, 12 + i));
}

TEST(Random, ManyBlocksAreTheSameAsOneByOne) {
  for (size_t count : {1, 31, 32, 77}) {
    std::vector<PhiloxBlock> blocks(count);
    random_blocks(uint64_t{7} << 40 | 3, RandomPurpose::kDraft, uint64_t{5} << 33 | 1, 100, blocks);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(blocks[i], random_block(uint64_t{7} << 40 | 3, RandomPurpose::kDraft, uint64_t{5} << 33 | 1,
                                        100 + static_cast<uint32_t>(i)));
    }
  }
}

TEST(Random, ChoicesHaveDistinctSeeds) {
  std::set<uint64_t> seeds;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    for (uint64_t choice = 0; choice < 100; ++choice) seeds.insert(hash_seed(seed, choice));
  }
  EXPECT_EQ(seeds.size(), 10'000u);
}

TEST(Random, GumbelIsFiniteOrderedAndBounded) {
  EXPECT_FLOAT_EQ(gumbel(0), -std::log(33 * std::log(2.0)));
  EXPECT_FLOAT_EQ(gumbel(0xffffffff), 33 * std::log(2.0));
  EXPECT_GT(gumbel(0), -3.14f);
  EXPECT_LT(gumbel(0xffffffff), 22.88f);
  float previous = gumbel(0);
  for (uint64_t x = 0; x < uint64_t{1} << 32; x += 65'521) {
    float g = gumbel(static_cast<uint32_t>(x));
    ASSERT_GE(g, previous);
    previous = g;
  }
}

// Mean Euler's constant, variance pi^2 / 6.
TEST(Random, GumbelHasTheMomentsOfItsDistribution) {
  constexpr int kDraws = 400'000;
  double sum = 0, squares = 0;
  for (uint32_t i = 0; i < kDraws; ++i) {
    double g = gumbel(random_u32(3, RandomPurpose::kSample, i / 1000, i % 1000));
    sum += g;
    squares += g * g;
  }
  double mean = sum / kDraws;
  EXPECT_NEAR(mean, 0.5772157, 0.01);
  EXPECT_NEAR(squares / kDraws - mean * mean, 1.6449341, 0.03);
}

}  // namespace
}  // namespace tercet
