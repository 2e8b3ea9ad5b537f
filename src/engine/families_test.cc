// What the families ask of the engine beyond one dense model: several KV groups, latent ones, rotary
// frequencies that depend on how long a sequence may get; with every type of KV, a request's tokens and
// log-probabilities depend on the request alone.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <map>
#include <numeric>

#include "backend/cpu/cpu_device.h"
#include "engine/generate.h"
#include "model/convert.h"
#include "model/exactness.h"
#include "model/golden_check.h"
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
  backend::KvType kv_type = backend::KvType::kF16;
  int num_sequences = 1;
  int num_kv_tokens = 0;  // 0: a whole context for each sequence
  int prefill_chunk = 512;
  int decode_reserve = 64;
  int num_threads = 2;
  bool widen_weights = false;
};

// An engine on a model of tests/data/arch.
class TinyEngine {
 public:
  TinyEngine(const model::ModelFiles& files, const TinyOptions& tiny) : threads_(tiny.num_threads) {
    auto spec = model::model_spec(files.source());
    TERCET_CHECK(spec.ok());
    backend::CpuDeviceOptions device_options;
    device_options.widen_weights = tiny.widen_weights;
    device_ = backend::make_cpu_device(device_options);
    auto weights = model::load_weights(*spec, files.tensors, *device_, threads_);
    TERCET_CHECK(weights.ok());
    decoder_ = std::make_unique<model::Decoder>(*std::move(spec), *std::move(weights));
    EngineOptions options;
    options.context_length = 256;
    options.num_kv_tokens = tiny.num_kv_tokens > 0 ? tiny.num_kv_tokens : 256 * tiny.num_sequences;
    options.kv_type = tiny.kv_type;
    options.scheduler.max_sequences = tiny.num_sequences;
    options.scheduler.prefill_budget = tiny.prefill_chunk;
    options.scheduler.decode_budget = tiny.num_sequences;
    options.scheduler.token_budget = tiny.prefill_chunk + tiny.num_sequences;
    options.scheduler.decode_reserve = tiny.decode_reserve;
    auto engine = Engine::create(*decoder_, any_tokenizer(), *device_, threads_, options);
    TERCET_CHECK(engine.ok());
    engine_ = *std::move(engine);
  }
  TinyEngine(const std::string& family, const TinyOptions& options)
      : TinyEngine(open(model::GoldenFolder(family, "config.json").path()), options) {}

  static model::ModelFiles open(const std::string& path) {
    auto files = model::open_model_files(path);
    TERCET_CHECK(files.ok());
    return *std::move(files);
  }

  Engine& operator*() { return *engine_; }
  Engine* operator->() { return engine_.get(); }

 private:
  ThreadPool threads_;
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
  request.sampling.num_logprobs = 4;
  request.stop.max_tokens = max_tokens;
  request.stop.ignore_eos = true;
  return request;
}

// Every token, and the log-probabilities of it and of the best beside it, bit by bit.
using Answer = std::vector<int32_t>;

void append(Answer& answer, const core::TokenEvent& event) {
  if (!event.token) return;
  answer.push_back(*event.token);
  answer.push_back(std::bit_cast<int32_t>(event.logprob.value().logprob));
  for (const core::TokenLogprob& top : event.top_logprobs) {
    answer.push_back(top.token);
    answer.push_back(std::bit_cast<int32_t>(top.logprob));
  }
}

std::map<uint64_t, Answer> answers(TinyEngine& engine, const std::vector<core::Request>& requests) {
  for (const core::Request& request : requests) EXPECT_TRUE(engine->add(request).ok());
  std::map<uint64_t, Answer> answers;
  while (engine->busy()) {
    const auto events = engine->step();
    if (!events.ok()) {
      ADD_FAILURE() << events.error().to_string();
      break;
    }
    for (const core::TokenEvent& event : *events) append(answers[event.request_id], event);
  }
  return answers;
}

struct Case {
  const char* family;
  backend::KvType kv_type;
};
std::string name_of(const Case& c) { return std::string(c.family) + "_" + model::kv_type_name(c.kv_type); }
void PrintTo(const Case& c, std::ostream* os) { *os << name_of(c); }

class FamiliesInTheEngine : public testing::TestWithParam<Case> {
 protected:
  static TinyEngine engine(TinyOptions options) {
    options.kv_type = GetParam().kv_type;
    return TinyEngine(GetParam().family, options);
  }
  static std::map<uint64_t, Answer> alone(const std::vector<core::Request>& requests) {
    TinyEngine single = engine({});
    std::map<uint64_t, Answer> all;
    for (const core::Request& request : requests) all.merge(answers(single, {request}));
    return all;
  }
};

TEST_P(FamiliesInTheEngine, APrefixCacheHitChangesNoBit) {
  TinyEngine engine = this->engine({});
  core::Request first = request(1, model::random_tokens(100, 1, kVocab), 12);
  const auto cold = answers(engine, {first});
  EXPECT_EQ(engine->stats().num_cached_tokens, 0);
  first.id = 2;
  EXPECT_EQ(cold.at(1), answers(engine, {first}).at(2));
  EXPECT_EQ(engine->stats().num_cached_tokens, 96);
}

TEST_P(FamiliesInTheEngine, ChunksAndThreadsChangeNoBit) {
  const core::Request only = request(1, model::random_tokens(150, 1, kVocab), 12);
  TinyEngine whole = engine({});
  const auto expected = answers(whole, {only});
  ASSERT_EQ(expected.at(1).size(), 12u * 10);
  for (const int chunk : {1, 7, 16, 64}) {
    TinyEngine chunked = engine({.prefill_chunk = chunk});
    EXPECT_EQ(expected, answers(chunked, {only})) << "chunks of " << chunk;
  }
  for (const int threads : {1, 3}) {
    TinyEngine other = engine({.prefill_chunk = 48, .num_threads = threads});
    EXPECT_EQ(expected, answers(other, {only})) << threads << " threads";
  }
}

TEST_P(FamiliesInTheEngine, RequestsTogetherGetWhatTheyGetAlone) {
  std::vector<core::Request> requests;
  for (uint64_t id = 1; id <= 8; ++id) {
    const int size = 10 + static_cast<int>(id) * 13;
    requests.push_back(request(id, model::random_tokens(size, static_cast<uint32_t>(id), kVocab), 12));
  }
  // Prompts in chunks beside decodes.
  TinyEngine shared = engine({.num_sequences = 4, .prefill_chunk = 24});
  EXPECT_EQ(alone(requests), answers(shared, requests));
}

// Row D9: a full pool, prefix cache and quantized KV together. Each takes two blocks at first and five at
// last, of sixteen.
TEST_P(FamiliesInTheEngine, PreemptedRequestsGetWhatTheyGetAlone) {
  std::vector<core::Request> requests;
  for (uint64_t id = 1; id <= 12; ++id) {
    const auto prompt = static_cast<uint32_t>((id - 1) % 8 + 1);
    requests.push_back(request(id, model::random_tokens(30, prompt, kVocab), 40));
  }
  TinyEngine crowded =
      engine({.num_sequences = 8, .num_kv_tokens = 256, .prefill_chunk = 64, .decode_reserve = 1});
  answers(crowded, {request(100, requests[0].prompt, 1)});  // the first one finds its prefix
  EXPECT_EQ(alone(requests), answers(crowded, requests));
  EXPECT_GT(crowded->stats().num_preemptions, 0);
  EXPECT_GT(crowded->stats().num_cached_tokens, 0);
}

// Row D12, and rows A12 and A13: seeds and their absence side by side.
TEST_P(FamiliesInTheEngine, OnePromptTwiceInAStepIsTwoAnswers) {
  const std::vector<int32_t> prompt = model::random_tokens(70, 3, kVocab);
  const Answer seeded = alone({request(1, prompt, 12)}).at(1);
  std::vector<core::Request> requests;
  for (uint64_t id = 1; id <= 4; ++id) {
    requests.push_back(request(id, prompt, 12));
    requests.back().sampling.seed.reset();
    if (id % 2 == 1) requests.back().sampling.seed = 1;
  }
  TinyEngine shared = engine({.num_sequences = 4});
  const auto together = answers(shared, requests);
  EXPECT_EQ(together.at(1), seeded);
  EXPECT_EQ(together.at(3), seeded);
  EXPECT_NE(together.at(2), together.at(4));
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
    TinyEngine single = engine({});
    std::map<uint64_t, std::vector<float>> alone;
    for (uint64_t id = 1; id <= 8; ++id) alone.merge(embed(*single, {embedding_request(id, pooling)}));
    ASSERT_EQ(alone.size(), 8u);
    EXPECT_NE(alone[1], alone[2]);

    TinyEngine shared = engine({.num_sequences = 4, .prefill_chunk = 24});
    std::vector<core::Request> requests;
    for (uint64_t id = 1; id <= 8; ++id) {
      requests.push_back(embedding_request(id, pooling));
      requests.push_back(request(100 + id, requests.back().prompt, 12));
    }
    EXPECT_EQ(alone, embed(*shared, requests));
    EXPECT_EQ(alone, embed(*shared, requests)) << "with the prefixes of the first round";
  }
}

// Windows and several KV groups, sinks, a mixture, latent attention, and frequencies that a request chooses.
std::vector<Case> cases() {
  std::vector<Case> cases;
  for (const char* family : {"gpt_oss", "phi3_longrope"}) cases.push_back({family, backend::KvType::kF16});
  for (const char* family : {"llama", "gemma3", "qwen3_moe", "deepseek_v3"})
    for (const backend::KvType kv_type : model::kKvTypes) cases.push_back({family, kv_type});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Models, FamiliesInTheEngine, testing::ValuesIn(cases()),
                         [](const auto& info) { return name_of(info.param); });

class GoldenIds : public testing::TestWithParam<const char*> {};

// With float32 arithmetic, from the folder and from the GGUF file made of it.
TEST_P(GoldenIds, ComeOutOfTheEngine) {
  const model::GoldenFolder folder(GetParam(), "config.json");
  const std::string gguf = folder / "out.gguf";
  ASSERT_TRUE(model::convert_to_gguf(TinyEngine::open(folder.path()), gguf).ok());
  const model::GoldenLogits golden = model::golden_logits(GetParam());
  const core::Request greedy = request(1, golden.ids_a, static_cast<int>(golden.greedy_a.size()), 0);
  for (const std::string& path : {folder.path(), gguf}) {
    TinyEngine engine(TinyEngine::open(path), {.kv_type = backend::KvType::kF32, .widen_weights = true});
    EXPECT_EQ(golden.greedy_a, generate(*engine, greedy)) << path;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GoldenIds, testing::ValuesIn(model::kGoldenFamilies),
                         [](const auto& info) { return std::string(info.param); });

// phi3_longrope's original context is 64 tokens.
TEST(Longrope, ASequencesFrequenciesAreChosenByHowLongItMayGet) {
  const std::vector<int32_t> prompt = model::random_tokens(40, 5, kVocab);
  TinyEngine engine("phi3_longrope", {});
  core::Usage usage;
  const auto short_answer = generate(*engine, request(1, prompt, 24, 0), &usage);
  // Another length on the same side of the limit finds the prefix, one beyond it must not.
  EXPECT_EQ(generate(*engine, request(2, prompt, 8, 0), &usage),
            std::vector<int32_t>(short_answer.begin(), short_answer.begin() + 8));
  EXPECT_EQ(usage.num_cached_tokens, 32);
  const auto long_answer = generate(*engine, request(3, prompt, 25, 0), &usage);
  EXPECT_EQ(usage.num_cached_tokens, 0);
  EXPECT_NE(short_answer, std::vector<int32_t>(long_answer.begin(), long_answer.end() - 1));

  TinyEngine fresh("phi3_longrope", {.prefill_chunk = 7});
  EXPECT_EQ(long_answer, generate(*fresh, request(4, prompt, 25, 0)));
}

// Row A5.
TEST(CachedTokens, AreThoseOfTheFirstAdmissionAlsoAfterAPreemption) {
  const std::vector<int32_t> prompt = model::random_tokens(100, 1, kVocab);
  TinyEngine engine("llama_plain", {.num_sequences = 2, .num_kv_tokens = 320});
  generate(*engine, request(1, prompt, 1));
  ASSERT_TRUE(engine->add(request(2, model::random_tokens(60, 2, kVocab), 150)).ok());
  core::Usage usage;
  EXPECT_EQ(generate(*engine, request(3, prompt, 120), &usage).size(), 120u);
  EXPECT_EQ(engine->stats().num_preemptions, 1);
  EXPECT_EQ(usage.num_cached_tokens, 96);
  EXPECT_EQ(usage.num_output_tokens, 120);
}

TEST(Embeddings, TheOutputLayerMakesTheGoldenLogitsOfTheLastTokens) {
  const model::GoldenLogits golden = model::golden_logits("llama");
  TinyEngine engine("llama", {.kv_type = backend::KvType::kF32, .widen_weights = true});
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
  TinyEngine engine("llama_plain", {});
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
  TinyEngine engine("llama_plain", {});
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

}  // namespace
}  // namespace tercet::engine
