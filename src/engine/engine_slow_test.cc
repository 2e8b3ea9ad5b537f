// The properties that the arithmetic promises, on a real model: what a row computes depends on its sequence
// alone.
#include <gtest/gtest.h>

#include <cstring>

#include "engine/generate.h"
#include "engine/llm.h"
#include "model/exactness.h"

namespace tercet::engine {
namespace {

using backend::Isa;
using model::DecoderHarness;
using model::kv_bytes;
using model::random_tokens;
using model::run_in_chunks;
using model::RunResult;
using model::slice;
using model::TestRows;
using model::vector_isas;

std::string small_model() { return model::test_model("smollm2-135m"); }

class Exactness : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (small_model().empty())
      GTEST_SKIP() << "tercet pull smollm2-135m and set TERCET_MODELS to the folder it names";
  }
  static DecoderHarness::Options options(Isa isa) {
    DecoderHarness::Options options;
    options.device.isa = isa;
    return options;
  }
};

TEST_P(Exactness, LogitsAndKvDoNotDependOnChunkingOrThreads) {
  DecoderHarness harness(small_model(), options(GetParam()));
  const std::vector<int32_t> tokens = random_tokens(80, 1);
  const RunResult whole = run_in_chunks(harness, tokens, tokens.size());
  for (size_t chunk : {1, 7, 16, 64}) {
    harness.restart(2);
    EXPECT_TRUE(whole == run_in_chunks(harness, tokens, chunk)) << "chunks of " << chunk;
  }
  for (int threads : {1, 3}) {
    harness.restart(threads);
    EXPECT_TRUE(whole == run_in_chunks(harness, tokens, 48)) << threads << " threads";
  }
}

// Two segments of attention and more, split over threads when decoded.
TEST_P(Exactness, ALongContextDecodesAsItPrefills) {
  DecoderHarness harness(small_model(), options(GetParam()));
  const std::vector<int32_t> tokens = random_tokens(600, 2);
  const RunResult whole = run_in_chunks(harness, tokens, tokens.size());
  harness.restart(2);
  const auto head = harness.run({{slice(tokens, 0, 595), 0, 0, true}});
  for (size_t i = 595; i < tokens.size(); ++i) {
    const auto row = harness.run({{{tokens[i]}, static_cast<int>(i), 0, true}});
    EXPECT_EQ(0,
              std::memcmp(row.data(), whole.logits.data() + i * harness.vocab(), row.size() * sizeof(float)))
        << i;
  }
}

TEST_P(Exactness, LogitsDoNotDependOnTheBatch) {
  DecoderHarness harness(small_model(), options(GetParam()));
  for (int batch_size : {1, 2, 5, 16, 33}) {
    std::vector<TestRows> batch;
    for (int s = 0; s < batch_size; ++s)
      batch.push_back({random_tokens(1 + s * 5 % 23, 100 + static_cast<uint32_t>(s)), 0, s * 2, true});
    harness.restart(2);
    const std::vector<float> together = harness.run(batch);
    size_t row = 0;
    for (const TestRows& sequence : batch) {
      const size_t count = sequence.tokens.size() * harness.vocab();
      // Every fourth alone: the batch must not show in any.
      if (sequence.first_block % 8 == 0) {
        harness.restart(2);
        const std::vector<float> alone = harness.run({{sequence.tokens, 0, 3, true}});
        ASSERT_EQ(alone.size(), count);
        EXPECT_EQ(0, std::memcmp(alone.data(), together.data() + row, count * sizeof(float)))
            << "sequence at block " << sequence.first_block << " of a batch of " << batch_size;
      }
      row += count;
    }
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Exactness);
INSTANTIATE_TEST_SUITE_P(Isa, Exactness, testing::ValuesIn(vector_isas()),
                         [](const auto& info) { return std::string(backend::isa_name(info.param)); });

// The scalar program is slow: one prompt of 48 and 8 more tokens, whole, in chunks of 7, and in a batch of 4.
TEST(ScalarReference, EqualsItselfInChunksAndBatchesAndEveryVectorInstructionSet) {
  if (small_model().empty())
    GTEST_SKIP() << "tercet pull smollm2-135m and set TERCET_MODELS to the folder it names";
  DecoderHarness::Options options;
  options.device.isa = Isa::kScalar;
  DecoderHarness scalar(small_model(), options);
  const std::vector<int32_t> tokens = random_tokens(56, 3);
  const std::vector<int32_t> prompt = slice(tokens, 0, 48);
  RunResult whole;
  whole.logits = scalar.run({{prompt, 0, 0, true}});
  for (size_t i = 48; i < tokens.size(); ++i) {
    const auto row = scalar.run({{{tokens[i]}, static_cast<int>(i), 0, true}});
    whole.logits.insert(whole.logits.end(), row.begin(), row.end());
  }
  whole.kv = kv_bytes(scalar.kv(), 0, 4);
  scalar.restart(2);
  EXPECT_TRUE(whole == run_in_chunks(scalar, tokens, 7));
  scalar.restart(2);
  const std::vector<float> batch = scalar.run({{random_tokens(3, 4), 0, 10, true},
                                               {tokens, 0, 0, true},
                                               {random_tokens(5, 5), 0, 20, true},
                                               {{7}, 0, 30, true}});
  EXPECT_EQ(0, std::memcmp(batch.data() + 3 * scalar.vocab(), whole.logits.data(),
                           whole.logits.size() * sizeof(float)));
  for (Isa isa : vector_isas()) {
    options.device.isa = isa;
    DecoderHarness other(small_model(), options);
    EXPECT_TRUE(whole == run_in_chunks(other, tokens, 16)) << backend::isa_name(isa);
  }
}

class EngineOnAModel : public testing::Test {
 protected:
  void SetUp() override {
    if (small_model().empty())
      GTEST_SKIP() << "tercet pull smollm2-135m and set TERCET_MODELS to the folder it names";
  }
  static std::unique_ptr<Llm> load(int context, int num_sequences, int prefill_chunk = 512) {
    LlmOptions options;
    options.context_length = context;
    options.num_sequences = num_sequences;
    options.prefill_chunk = prefill_chunk;
    options.num_threads = 2;
    auto llm = Llm::load(small_model(), options);
    EXPECT_TRUE(llm.ok()) << llm.error().to_string();
    return *std::move(llm);
  }
  static core::Request request(uint64_t id, int prompt_size, float temperature) {
    core::Request request;
    request.id = id;
    request.prompt = random_tokens(prompt_size, static_cast<uint32_t>(prompt_size));
    request.sampling.temperature = temperature;
    request.sampling.seed = id;
    request.stop.max_tokens = 12;
    request.stop.ignore_eos = true;
    return request;
  }
};

TEST_F(EngineOnAModel, APrefixCacheHitChangesNoToken) {
  const auto llm = load(512, 1);
  core::Request first = request(1, 100, 0.8f);
  core::Usage cold, warm;
  const auto tokens = generate(llm->engine(), first, &cold);
  first.id = 2;
  EXPECT_EQ(tokens, generate(llm->engine(), first, &warm));
  EXPECT_EQ(cold.num_cached_tokens, 0);
  EXPECT_EQ(warm.num_cached_tokens, 96);
  first.id = 3;
  first.cache_salt = "someone else";
  EXPECT_EQ(tokens, generate(llm->engine(), first, &warm));
  EXPECT_EQ(warm.num_cached_tokens, 0);
}

TEST_F(EngineOnAModel, RequestsTogetherGetWhatTheyGetAlone) {
  std::map<uint64_t, std::vector<int32_t>> alone;
  {
    const auto llm = load(256, 1);
    for (uint64_t id = 1; id <= 8; ++id)
      alone[id] =
          generate(llm->engine(), request(id, 10 + static_cast<int>(id) * 13, id % 2 == 0 ? 1.0f : 0.0f));
  }
  // Four sequences at a time, prompts in chunks, and a pool that preempts.
  const auto llm = load(256, 4, 32);
  std::map<uint64_t, std::vector<int32_t>> together;
  for (uint64_t id = 1; id <= 8; ++id)
    ASSERT_TRUE(
        llm->engine().add(request(id, 10 + static_cast<int>(id) * 13, id % 2 == 0 ? 1.0f : 0.0f)).ok());
  while (llm->engine().busy()) {
    const auto events = llm->engine().step();
    ASSERT_TRUE(events.ok());
    for (const core::TokenEvent& event : *events)
      if (event.token) together[event.request_id].push_back(*event.token);
  }
  EXPECT_EQ(alone, together);
}

TEST_F(EngineOnAModel, AnAbortFreesTheRequestAtOnce) {
  const auto llm = load(256, 2);
  ASSERT_TRUE(llm->engine().add(request(1, 60, 0.0f)).ok());
  ASSERT_TRUE(llm->engine().step().ok());
  llm->engine().abort(1);
  const auto events = llm->engine().step();
  ASSERT_EQ(events->size(), 1u);
  EXPECT_EQ(events->front().finish, core::FinishReason::kAborted);
  EXPECT_FALSE(llm->engine().busy());
  EXPECT_EQ(llm->engine().stats().num_running, 0);
}

TEST_F(EngineOnAModel, WarmingUpLeavesNothing) {
  const core::Request greedy = request(1, 40, 0.0f);
  const auto cold = load(128, 1), warm = load(128, 1);
  ASSERT_TRUE(warm->engine().warm_up().ok());
  EXPECT_FALSE(warm->engine().busy());
  EXPECT_EQ(warm->engine().stats().kv_usage, 0);
  EXPECT_EQ(generate(cold->engine(), greedy), generate(warm->engine(), greedy));
  EXPECT_EQ(warm->engine().stats().num_prompt_tokens, 40);
  // What it computed is in no cache.
  core::Request zeros = request(2, 20, 0.0f);
  zeros.prompt.assign(20, 0);
  core::Usage usage;
  EXPECT_EQ(generate(cold->engine(), zeros), generate(warm->engine(), zeros, &usage));
  EXPECT_EQ(usage.num_cached_tokens, 0);
}

TEST_F(EngineOnAModel, RefusesWhatCanNeverRun) {
  const auto llm = load(64, 1);
  core::Request too_long = request(1, 64, 0.0f);
  const Status refused = llm->engine().add(too_long);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("64"), std::string::npos);
  core::Request bad_token = request(2, 3, 0.0f);
  bad_token.prompt[1] = 49152;
  EXPECT_FALSE(llm->engine().add(bad_token).ok());
  core::Request empty = request(3, 0, 0.0f);
  EXPECT_FALSE(llm->engine().add(empty).ok());
}

}  // namespace
}  // namespace tercet::engine
