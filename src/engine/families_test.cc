// What the families ask of the engine beyond one dense model: several KV groups, latent ones, and rotary
// frequencies that depend on how long a sequence may get.
#include <gtest/gtest.h>

#include <map>

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

class TinyEngine {
 public:
  TinyEngine(const std::string& family, int num_sequences, int prefill_chunk, bool reference = false) {
    const model::GoldenFolder folder(family, "config.json");
    auto files = model::open_model_files(folder.path());
    TERCET_CHECK(files.ok());
    auto spec = model::model_spec(files->source());
    TERCET_CHECK(spec.ok());
    backend::CpuDeviceOptions device_options;
    device_options.widen_weights = reference;
    device_ = backend::make_cpu_device(device_options);
    auto weights = model::load_weights(*spec, files->tensors, *device_, threads_);
    TERCET_CHECK(weights.ok());
    decoder_ = std::make_unique<model::Decoder>(*std::move(spec), *std::move(weights));
    EngineOptions options;
    options.context_length = 256;
    options.num_kv_tokens = 256 * num_sequences;
    if (reference) options.kv_type = backend::KvType::kF32;
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

TEST(Longrope, TheGoldenIdsComeOutOfTheEngine) {
  const model::GoldenLogits golden = model::golden_logits("phi3_longrope");
  TinyEngine engine("phi3_longrope", 1, 512, /*reference=*/true);
  EXPECT_EQ(golden.greedy_a,
            generate(*engine, request(1, golden.ids_a, static_cast<int>(golden.greedy_a.size()), 0)));
}

}  // namespace
}  // namespace tercet::engine
