// What the families ask of the engine beyond one dense model: several KV groups, latent ones, and rotary
// frequencies that depend on how long a sequence may get.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "backend/cpu/cpu_device.h"
#include "engine/generate.h"
#include "model/exactness.h"
#include "model/golden_folder.h"
#include "model/package_text.h"

namespace tercet::engine {
namespace {

constexpr int kVocab = 512;

// A byte-level vocabulary of the golden models' size. What the tokens say does not matter here.
text::Tokenizer any_tokenizer() {
  std::vector<std::string> tokens;
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    const int code = printable ? byte : next++;
    std::string token;
    if (code >= 128) token += static_cast<char>(0xC0 | code >> 6);
    token += static_cast<char>(code < 128 ? code : 0x80 | (code & 63));
    tokens.push_back(token);
  }
  tokens.push_back("ab");
  while (static_cast<int>(tokens.size()) < kVocab)
    tokens.push_back("<" + std::to_string(tokens.size()) + ">");
  const std::vector<std::string> merges = {"a b"};
  const std::vector<int32_t> types(tokens.size(), 1);
  format::Metadata metadata("any");
  metadata.set("tokenizer.ggml.model", "gpt2");
  metadata.set("tokenizer.ggml.pre", "gpt-2");
  metadata.set("tokenizer.ggml.tokens", std::span<const std::string>(tokens));
  metadata.set("tokenizer.ggml.merges", std::span<const std::string>(merges));
  metadata.set("tokenizer.ggml.token_type", std::span<const int32_t>(types));
  auto text = model::text_from_metadata(metadata, {});
  TERCET_CHECK(text.ok());
  return text->tokenizer;
}

struct TinyOptions {
  bool reference = false;  // F32 activations
  backend::KvType kv_type = backend::KvType::kF16;
  int num_kv_tokens = 0;  // 0: for all sequences
};

class TinyEngine {
 public:
  TinyEngine(const std::string& family, int num_sequences, int prefill_chunk, TinyOptions more = {}) {
    const model::GoldenFolder folder(family, "config.json");
    auto files = model::open_model_files(folder.path());
    TERCET_CHECK(files.ok());
    auto spec = model::model_spec(files->source());
    TERCET_CHECK(spec.ok());
    backend::CpuDeviceOptions device_options;
    device_options.widen_weights = more.reference;
    device_ = backend::make_cpu_device(device_options);
    auto weights = model::load_weights(*spec, files->tensors, *device_, threads_);
    TERCET_CHECK(weights.ok());
    decoder_ = std::make_unique<model::Decoder>(*std::move(spec), *std::move(weights));
    EngineOptions options;
    options.context_length = 256;
    options.num_kv_tokens = more.num_kv_tokens > 0 ? more.num_kv_tokens : 256 * num_sequences;
    options.kv_type = more.reference ? backend::KvType::kF32 : more.kv_type;
    options.scheduler.max_sequences = num_sequences;
    options.scheduler.prefill_budget = prefill_chunk;
    options.scheduler.decode_budget = num_sequences;
    options.scheduler.token_budget = prefill_chunk + num_sequences;
    auto engine = Engine::create(*decoder_, any_tokenizer(), *device_, threads_, options);
    TERCET_CHECK(engine.ok());
    engine_ = *std::move(engine);
  }
  Engine& operator*() { return *engine_; }
  Engine* operator->() { return engine_.get(); }

 private:
  ThreadPool threads_{2};
  std::unique_ptr<backend::Device> device_;
  std::unique_ptr<model::Decoder> decoder_;
  std::unique_ptr<Engine> engine_;
};

core::Request request(uint64_t id, std::vector<int32_t> prompt, int max_tokens, float temperature = 0.8f) {
  core::Request request;
  request.id = id;
  request.prompt = std::move(prompt);
  request.sampling.temperature = temperature;
  request.sampling.seed = id;
  request.stop.max_tokens = max_tokens;
  request.stop.ignore_eos = true;
  return request;
}

class FamiliesInTheEngine : public testing::TestWithParam<const char*> {};

TEST_P(FamiliesInTheEngine, APrefixCacheHitChangesNoToken) {
  TinyEngine engine(GetParam(), 1, 512);
  core::Request first = request(1, model::random_tokens(100, 1, kVocab), 12);
  core::Usage cold, warm;
  const auto tokens = generate(*engine, first, &cold);
  first.id = 2;
  EXPECT_EQ(tokens, generate(*engine, first, &warm));
  EXPECT_EQ(cold.num_cached_tokens, 0);
  EXPECT_EQ(warm.num_cached_tokens, 96);
}

TEST_P(FamiliesInTheEngine, RequestsTogetherGetWhatTheyGetAlone) {
  const auto make = [](uint64_t id) {
    const auto seed = static_cast<uint32_t>(id);
    return request(id, model::random_tokens(10 + static_cast<int>(id) * 13, seed, kVocab), 12);
  };
  std::map<uint64_t, std::vector<int32_t>> alone, together;
  TinyEngine single(GetParam(), 1, 512);
  for (uint64_t id = 1; id <= 8; ++id) alone[id] = generate(*single, make(id));
  // Prompts in chunks beside decodes.
  TinyEngine shared(GetParam(), 4, 24);
  for (uint64_t id = 1; id <= 8; ++id) ASSERT_TRUE(shared->add(make(id)).ok());
  while (shared->busy()) {
    const auto events = shared->step();
    ASSERT_TRUE(events.ok());
    for (const core::TokenEvent& event : *events)
      if (event.token) together[event.request_id].push_back(*event.token);
  }
  EXPECT_EQ(alone, together);
}

// Row D9: quantized KV, prefix cache, and a pool that is full.
TEST_P(FamiliesInTheEngine, AFullPoolOfQuantizedKvChangesNoToken) {
  const TinyOptions int8 = {.kv_type = backend::KvType::kInt8};
  const auto make = [](uint64_t id, uint64_t prompt) {
    const auto seed = static_cast<uint32_t>(prompt);
    return request(id, model::random_tokens(10 + static_cast<int>(prompt) * 13, seed, kVocab), 100);
  };
  std::map<uint64_t, std::vector<int32_t>> alone, together;
  TinyEngine single(GetParam(), 1, 512, int8);
  for (uint64_t id = 1; id <= 6; ++id) alone[id] = alone[id + 6] = generate(*single, make(id, id));
  TinyEngine shared(GetParam(), 4, 24, {.kv_type = backend::KvType::kInt8, .num_kv_tokens = 256});
  for (uint64_t id = 1; id <= 12; ++id) {
    core::Request asked = make(id, (id - 1) % 6 + 1);
    asked.sampling.seed = (id - 1) % 6 + 1;
    ASSERT_TRUE(shared->add(asked).ok());
  }
  double usage = 0;
  while (shared->busy()) {
    const auto events = shared->step();
    ASSERT_TRUE(events.ok());
    usage = std::max(usage, shared->stats().kv_usage);
    for (const core::TokenEvent& event : *events)
      if (event.token) together[event.request_id].push_back(*event.token);
  }
  EXPECT_EQ(alone, together);
  EXPECT_GT(shared->stats().num_preemptions, 0);
  EXPECT_GT(shared->stats().num_cached_tokens, 0);
  EXPECT_EQ(usage, 1);
}

// Row D12, and rows A12 and A13: seeds and their absence side by side.
TEST_P(FamiliesInTheEngine, OnePromptTwiceInAStepIsTwoAnswers) {
  const std::vector<int32_t> prompt = model::random_tokens(70, 3, kVocab);
  TinyEngine single(GetParam(), 1, 512);
  const auto seeded = generate(*single, request(1, prompt, 12));
  TinyEngine shared(GetParam(), 4, 512);
  for (uint64_t id = 1; id <= 4; ++id) {
    core::Request asked = request(id, prompt, 12);
    asked.sampling.seed.reset();
    if (id % 2 == 1) asked.sampling.seed = 1;
    ASSERT_TRUE(shared->add(asked).ok());
  }
  std::map<uint64_t, std::vector<int32_t>> together;
  while (shared->busy()) {
    for (const core::TokenEvent& event : *shared->step())
      if (event.token) together[event.request_id].push_back(*event.token);
  }
  EXPECT_EQ(together[1], seeded);
  EXPECT_EQ(together[3], seeded);
  EXPECT_NE(together[2], together[4]);
}

// Row A5.
TEST(CachedTokens, AreThoseOfTheFirstAdmissionAlsoAfterAPreemption) {
  const std::vector<int32_t> prompt = model::random_tokens(100, 1, kVocab);
  TinyEngine engine("llama_plain", 2, 512, {.num_kv_tokens = 320});
  generate(*engine, request(1, prompt, 1));
  ASSERT_TRUE(engine->add(request(2, model::random_tokens(60, 2, kVocab), 150)).ok());
  core::Usage usage;
  EXPECT_EQ(generate(*engine, request(3, prompt, 60), &usage).size(), 60u);
  EXPECT_EQ(engine->stats().num_preemptions, 1);
  EXPECT_EQ(usage.num_cached_tokens, 96);
  EXPECT_EQ(usage.num_output_tokens, 60);
}

core::Request embedding_request(uint64_t id, core::Pooling pooling) {
  const auto seed = static_cast<uint32_t>(id);
  core::Request made = request(id, model::random_tokens(10 + static_cast<int>(id) * 13, seed, kVocab), 0);
  made.embedding = pooling;
  return made;
}

// Chunks, the batch, answers beside it, the prefix cache and preemption do not show in a vector.
TEST_P(FamiliesInTheEngine, AnEmbeddingDependsOnItsTextAlone) {
  for (const core::Pooling pooling : {core::Pooling::kLast, core::Pooling::kMean}) {
    TinyEngine single(GetParam(), 1, 512);
    std::map<uint64_t, std::vector<float>> alone;
    for (uint64_t id = 1; id <= 8; ++id) alone.merge(embed(*single, {embedding_request(id, pooling)}));
    ASSERT_EQ(alone.size(), 8u);
    EXPECT_NE(alone[1], alone[2]);

    TinyEngine shared(GetParam(), 4, 24);
    std::vector<core::Request> requests;
    for (uint64_t id = 1; id <= 8; ++id) {
      requests.push_back(embedding_request(id, pooling));
      requests.push_back(request(100 + id, requests.back().prompt, 12));
    }
    EXPECT_EQ(alone, embed(*shared, requests));
    EXPECT_EQ(alone, embed(*shared, requests)) << "with the prefixes of the first round";
  }
}

INSTANTIATE_TEST_SUITE_P(Models, FamiliesInTheEngine,
                         testing::Values("gemma3", "gpt_oss", "qwen3_moe", "deepseek_v3", "phi3_longrope"),
                         [](const auto& info) { return std::string(info.param); });

// phi3_longrope's original context is 64 tokens.
TEST(Longrope, ASequencesFrequenciesAreChosenByHowLongItMayGet) {
  const std::vector<int32_t> prompt = model::random_tokens(40, 5, kVocab);
  TinyEngine engine("phi3_longrope", 1, 512);
  core::Usage usage;
  const auto short_answer = generate(*engine, request(1, prompt, 24, 0), &usage);
  // Another length on the same side of the limit finds the prefix, one beyond it must not.
  EXPECT_EQ(generate(*engine, request(2, prompt, 8, 0), &usage),
            std::vector<int32_t>(short_answer.begin(), short_answer.begin() + 8));
  EXPECT_EQ(usage.num_cached_tokens, 32);
  const auto long_answer = generate(*engine, request(3, prompt, 25, 0), &usage);
  EXPECT_EQ(usage.num_cached_tokens, 0);
  EXPECT_NE(short_answer, std::vector<int32_t>(long_answer.begin(), long_answer.end() - 1));

  TinyEngine fresh("phi3_longrope", 1, 7);
  EXPECT_EQ(long_answer, generate(*fresh, request(4, prompt, 25, 0)));
}

TEST(Embeddings, TheOutputLayerMakesTheGoldenLogitsOfTheLastTokens) {
  const model::GoldenLogits golden = model::golden_logits("llama");
  TinyEngine engine("llama", 1, 512, {.reference = true});
  core::Request asked = request(1, golden.ids_a, 0);
  asked.embedding = core::Pooling::kLast;
  const std::vector<float> vector = embed(*engine, {asked})[1];

  const auto file = format::SafetensorsFile::open(model::golden_path("llama") + "/model.safetensors");
  const auto bytes = file->find("lm_head.weight")->data;
  ASSERT_EQ(bytes.size(), vector.size() * kVocab * sizeof(float));
  std::vector<float> row(vector.size());
  for (size_t id = 0; id < kVocab; ++id) {
    std::memcpy(row.data(), bytes.data() + id * row.size() * sizeof(float), row.size() * sizeof(float));
    const double logit = std::inner_product(row.begin(), row.end(), vector.begin(), 0.0);
    EXPECT_NEAR(logit, golden.logits_a[golden.logits_a.size() - kVocab + id], 2e-4);
  }
}

TEST(Embeddings, TheMeanIsThatOfTheTokensInOrder) {
  const std::vector<int32_t> prompt = model::random_tokens(40, 9, kVocab);
  TinyEngine engine("llama_plain", 1, 512);
  std::vector<float> sum;
  for (size_t size = 1; size <= prompt.size(); ++size) {
    core::Request prefix = request(size, {prompt.begin(), prompt.begin() + static_cast<int>(size)}, 0);
    prefix.embedding = core::Pooling::kLast;
    const std::vector<float> last = embed(*engine, {prefix})[size];
    sum.resize(last.size());
    for (size_t i = 0; i < last.size(); ++i) sum[i] += last[i];
  }
  for (float& value : sum) value /= static_cast<float>(prompt.size());
  core::Request whole = request(100, prompt, 0);
  whole.embedding = core::Pooling::kMean;
  EXPECT_EQ(embed(*engine, {whole})[100], sum);
}

TEST(Embeddings, APromptMayFillTheContext) {
  TinyEngine engine("llama_plain", 1, 512);
  for (const int size : {256, 257}) {
    core::Request asked = request(1, model::random_tokens(size, 1, kVocab), 0);
    asked.embedding = core::Pooling::kLast;
    if (size == 256) {
      EXPECT_EQ(embed(*engine, {asked}).size(), 1u);
    } else {
      EXPECT_FALSE(engine->add(asked).ok());
    }
  }
}

TEST(Longrope, TheGoldenIdsComeOutOfTheEngine) {
  const model::GoldenLogits golden = model::golden_logits("phi3_longrope");
  TinyEngine engine("phi3_longrope", 1, 512, {.reference = true});
  EXPECT_EQ(golden.greedy_a,
            generate(*engine, request(1, golden.ids_a, static_cast<int>(golden.greedy_a.size()), 0)));
}

}  // namespace
}  // namespace tercet::engine
