// The properties that the arithmetic promises, on a tiny dense model with windows, on mixtures of experts and
// on latent attention, with weights in F32, BF16 and Q8_0 and with every type of KV: what a row computes
// depends on its sequence alone.
#include "model/exactness.h"

#include <gtest/gtest.h>

#include "model/golden_folder.h"
#include "model/rounded_tensors.h"

namespace tercet::model {
namespace {

using backend::Isa;
using backend::KvType;

struct Case {
  const char* family;
  DType type;
  KvType kv = KvType::kF16;
};
std::string name_of(const Case& c) {
  return std::string(c.family) + "_" + std::string(dtype_name(c.type)) + "_kv_" + kv_type_name(c.kv);
}
void PrintTo(const Case& c, std::ostream* os) { *os << name_of(c); }

class TinyExactness : public testing::TestWithParam<Case> {
 protected:
  static constexpr int kVocab = 512;

  DecoderHarness harness(Isa isa) const {
    const GoldenFolder folder(GetParam().family, "config.json");
    auto files = open_model_files(folder.path());
    TERCET_CHECK(files.ok());
    if (GetParam().type != DType::kF32) files->tensors = rounded(files->tensors, GetParam().type);
    DecoderHarness::Options options;
    options.device.isa = isa;
    options.num_blocks = 64;
    options.kv_type = GetParam().kv;
    return DecoderHarness(*std::move(files), options);
  }
};

TEST_P(TinyExactness, ChunksThreadsAndInstructionSetsDoNotShow) {
  const std::vector<int32_t> tokens = random_tokens(90, 7, kVocab);
  DecoderHarness scalar = harness(Isa::kScalar);
  const RunResult whole = run_in_chunks(scalar, tokens, tokens.size());
  scalar.restart(2);
  EXPECT_TRUE(whole == run_in_chunks(scalar, tokens, 7));
  for (const Isa isa : vector_isas()) {
    DecoderHarness harness = this->harness(isa);
    for (const size_t chunk : {size_t{1}, size_t{7}, size_t{16}, size_t{64}, tokens.size()}) {
      harness.restart(2);
      EXPECT_TRUE(whole == run_in_chunks(harness, tokens, chunk))
          << backend::isa_name(isa) << ", chunks of " << chunk;
    }
    for (const int threads : {1, 3}) {
      harness.restart(threads);
      EXPECT_TRUE(whole == run_in_chunks(harness, tokens, 48))
          << backend::isa_name(isa) << ", " << threads << " threads";
    }
  }
}

TEST_P(TinyExactness, TheBatchDoesNotShow) {
  DecoderHarness harness = this->harness(backend::best_isa());
  std::vector<TestRows> batch;
  for (int s = 0; s < 17; ++s)
    batch.push_back({random_tokens(1 + s * 5 % 23, 100 + static_cast<uint32_t>(s), kVocab), 0, s * 2, true});
  const std::vector<float> together = harness.run(batch);
  size_t row = 0;
  for (const TestRows& sequence : batch) {
    harness.restart(2);
    const std::vector<float> alone = harness.run({{sequence.tokens, 0, 3, true}});
    ASSERT_EQ(alone.size(), sequence.tokens.size() * kVocab);
    EXPECT_EQ(0, std::memcmp(alone.data(), together.data() + row, alone.size() * sizeof(float)))
        << "sequence at block " << sequence.first_block;
    row += alone.size();
  }
}

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (const char* family : {"gemma3", "gpt_oss", "qwen3_moe", "deepseek_v2", "deepseek_v3"})
    for (const DType type : {DType::kF32, DType::kBF16, DType::kQ8_0}) cases.push_back({family, type});
  for (const char* family : {"gemma3", "qwen3_moe", "deepseek_v3"})
    for (const KvType kv : kKvTypes)
      if (kv != KvType::kF16) cases.push_back({family, DType::kQ8_0, kv});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Models, TinyExactness, testing::ValuesIn(cases()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace tercet::model
