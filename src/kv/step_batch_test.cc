#include "kv/step_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tercet::kv {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<KvGroupSpec> kSpecs = {{GroupKind::kFull, 0, 8, {0}},
                                         {GroupKind::kSlidingWindow, 17, 8, {1}}};

// Two sequences: a decode at position 40 and a prefill of positions [16, 20).
StepBatch good_batch() {
  StepBatch batch;
  batch.tokens = {5, 1, 2, 3, 4};
  batch.positions = {40, 16, 17, 18, 19};
  batch.sequences = {{0, 1, 40, 0}, {1, 4, 16, 0}};
  batch.groups = {{{0, 1, 2, 0, 3}, {0, 3, 5}, {3}}, {{kNoBlock, 1, 2, 0, 3}, {0, 3, 5}, {3, 7}}};
  batch.wanted_rows = {0, 4};
  return batch;
}

TEST(StepBatch, AcceptsAGoodBatchAndAnEmptyOne) {
  EXPECT_THAT(good_batch().check(kSpecs), IsEmpty());
  StepBatch empty;
  empty.groups = {{{}, {0}, {1}}, {{}, {0}, {}}};
  EXPECT_THAT(empty.check(kSpecs), IsEmpty());
}

TEST(StepBatch, GivesEachSequenceItsTable) {
  EXPECT_THAT(good_batch().table(0, 1), testing::ElementsAre(0, 3));
  EXPECT_THAT(good_batch().table(1, 0), testing::ElementsAre(kNoBlock, 1, 2));
}

TEST(StepBatch, ChecksRows) {
  const auto problem_after = [](auto&& change) {
    StepBatch batch = good_batch();
    change(batch);
    return batch.check(kSpecs);
  };
  EXPECT_THAT(problem_after([](StepBatch& b) { b.positions.pop_back(); }),
              HasSubstr("4 positions for 5 tokens"));
  EXPECT_THAT(problem_after([](StepBatch& b) { b.positions[3] = 19; }),
              HasSubstr("row 3: position 19, not 18"));
  EXPECT_THAT(problem_after([](StepBatch& b) { b.sequences[1].first_row = 0; }),
              HasSubstr("first row 0, not 1"));
  EXPECT_THAT(problem_after([](StepBatch& b) { b.sequences[1].num_rows = 3; }),
              HasSubstr("cover 4 of 5 rows"));
  EXPECT_THAT(problem_after([](StepBatch& b) { b.sequences[1].num_rows = 5; }),
              HasSubstr("5 rows from row 1"));
  EXPECT_THAT(problem_after([](StepBatch& b) { b.sequences[0].num_rows = 0; }), HasSubstr("0 rows"));
  EXPECT_THAT(problem_after([](StepBatch& b) { b.tokens[2] = -1; }), HasSubstr("token -1"));
  EXPECT_THAT(problem_after([](StepBatch& b) { b.wanted_rows = {4, 0}; }), HasSubstr("wanted row 0"));
  EXPECT_THAT(problem_after([](StepBatch& b) { b.wanted_rows = {5}; }), HasSubstr("wanted row 5"));
  EXPECT_THAT(problem_after([](StepBatch& b) { b.hidden_rows = {5}; }), HasSubstr("wanted row 5"));
}

TEST(StepBatch, ChecksTables) {
  const auto problem_after = [](auto&& change) {
    StepBatch batch = good_batch();
    change(batch);
    return batch.check(kSpecs);
  };
  EXPECT_THAT(problem_after([](StepBatch& b) { b.groups.pop_back(); }), HasSubstr("1 groups, not 2"));
  EXPECT_THAT(problem_after([](StepBatch& b) { b.groups[0].starts = {0, 5}; }), HasSubstr("starts"));
  EXPECT_THAT(problem_after([](StepBatch& b) { b.groups[0].starts = {0, 6, 5}; }), HasSubstr("starts"));
  EXPECT_THAT(problem_after([](StepBatch& b) { b.groups[1].blocks[1] = 8; }),
              HasSubstr("group 1: block 8 of 8"));
  EXPECT_THAT(problem_after([](StepBatch& b) {
                b.groups[0].starts = {0, 2, 5};
              }),
              HasSubstr("beyond its table"));
  EXPECT_THAT(problem_after([](StepBatch& b) { b.groups[0].blocks[0] = kNoBlock; }), HasSubstr("not held"));
  EXPECT_THAT(problem_after([](StepBatch& b) { b.groups[1].blocks[1] = kNoBlock; }), HasSubstr("not held"));
  EXPECT_THAT(problem_after([](StepBatch& b) { b.groups[0].blocks[4] = 2; }), HasSubstr("which others hold"));
  EXPECT_THAT(problem_after([](StepBatch& b) {
                b.groups[0].blocks_to_zero = {3, 3};
              }),
              HasSubstr("zeroed twice"));
  EXPECT_THAT(problem_after([](StepBatch& b) { b.groups[0].blocks_to_zero = {1}; }),
              HasSubstr("to be zeroed"));
}

TEST(StepBatch, WindowOfWPositionsIncludesTheRowItself) {
  EXPECT_EQ(first_position_read(kSpecs[0], 100), 0);
  EXPECT_EQ(first_position_read(kSpecs[1], 16), 0);
  EXPECT_EQ(first_position_read(kSpecs[1], 17), 1);
}

}  // namespace
}  // namespace tercet::kv
