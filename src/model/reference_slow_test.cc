// The real models against float32 references made with other software (tests/data/reference): the reference's
// greedy continuation is forced, and the distribution at each of its positions compared.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "model/decoder_harness.h"

namespace tercet::model {
namespace {

struct Agreement {
  int positions = 0;
  int same_top1 = 0;
  double chosen_difference = 0;  // sum of |difference| of the chosen token's log-probability
  int listed = 0;
  double listed_difference = 0;  // the same over all listed tokens
};

double logsumexp(const float* logits, size_t vocab) {
  const float max = *std::max_element(logits, logits + vocab);
  double sum = 0;
  for (size_t i = 0; i < vocab; ++i)
    sum += std::exp(static_cast<double>(logits[i]) - static_cast<double>(max));
  return static_cast<double>(max) + std::log(sum);
}

void compare_row(const float* logits, size_t vocab, const nlohmann::json& best, Agreement& agreement) {
  const double normalizer = logsumexp(logits, vocab);
  const auto top1 = static_cast<int>(std::max_element(logits, logits + vocab) - logits);
  ++agreement.positions;
  agreement.same_top1 += top1 == best[0][0].get<int>() ? 1 : 0;
  for (size_t i = 0; i < best.size(); ++i) {
    const double logprob = static_cast<double>(logits[best[i][0].get<size_t>()]) - normalizer;
    const double difference = std::fabs(logprob - best[i][1].get<double>());
    if (i == 0) agreement.chosen_difference += difference;
    agreement.listed_difference += difference;
    ++agreement.listed;
  }
}

Agreement compare(DecoderHarness& harness, const std::string& reference_name) {
  std::ifstream file(std::string(TERCET_TEST_DATA) + "/reference/" + reference_name + ".json");
  const auto reference = nlohmann::json::parse(file);
  const size_t vocab = harness.vocab();
  Agreement agreement;
  for (const auto& prompt : reference["prompts"]) {
    auto tokens = prompt["tokens"].get<std::vector<int32_t>>();
    const size_t prompt_size = tokens.size();
    const auto continuation = prompt["continuation"].get<std::vector<int32_t>>();
    tokens.insert(tokens.end(), continuation.begin(), continuation.end() - 1);
    const std::vector<float> logits = harness.run({{tokens, 0, 0, true}});
    for (size_t i = 0; i < continuation.size(); ++i)
      compare_row(logits.data() + (prompt_size - 1 + i) * vocab, vocab, prompt["top5"][i], agreement);
  }
  return agreement;
}

struct ReferenceCase {
  const char* model;
  const char* reference;
  bool hook;                     // F32 activations and KV
  double max_listed_difference;  // 1.15 times llama.cpp's (tests/data/reference/README.md)
};
void PrintTo(const ReferenceCase& c, std::ostream* os) {
  *os << c.model << (c.hook ? " in F32" : " as shipped");
}

class Reference : public testing::TestWithParam<ReferenceCase> {};

TEST_P(Reference, AgreesWithFloat32) {
  const ReferenceCase& c = GetParam();
  const std::string path = test_model(c.model);
  if (path.empty())
    GTEST_SKIP() << "tercet pull " << c.model << " and set TERCET_MODELS to the folder it names";
  DecoderHarness::Options options;
  options.device.widen_weights = c.hook;
  options.kv_type = c.hook ? backend::KvType::kF32 : backend::KvType::kF16;
  DecoderHarness harness(path, options);
  const Agreement a = compare(harness, c.reference);
  const double top1 = static_cast<double>(a.same_top1) / a.positions;
  const double chosen = a.chosen_difference / a.positions, listed = a.listed_difference / a.listed;
  std::printf(
      "%s%s: top-1 %.2f %% of %d, mean |difference| of the chosen log-probability %.5f, of the listed %.5f\n",
      c.model, c.hook ? " in F32" : "", 100 * top1, a.positions, chosen, listed);
  EXPECT_GE(top1, c.hook ? 0.998 : 0.95);
  EXPECT_LE(chosen, c.hook ? 0.001 : 0.045);
  if (!c.hook) {
    EXPECT_LE(listed, c.max_listed_difference);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Reference,
                         testing::Values(ReferenceCase{"smollm2-135m", "smollm2-135m", true, 0},
                                         ReferenceCase{"smollm2-135m", "smollm2-135m", false, 1.15 * 0.091},
                                         ReferenceCase{"gemma3-270m", "gemma3-270m", true, 0},
                                         ReferenceCase{"gemma3-270m", "gemma3-270m", false, 1.15 * 0.115},
                                         ReferenceCase{"qwen2.5-coder-0.5b", "q05", true, 0},
                                         ReferenceCase{"qwen2.5-coder-0.5b", "q05", false, 1.15 * 0.053},
                                         ReferenceCase{"qwen2.5-coder-1.5b", "q15", true, 0},
                                         ReferenceCase{"qwen2.5-coder-1.5b", "q15", false, 1.15 * 0.055}),
                         [](const auto& info) {
                           std::string name =
                               std::string(info.param.model) + (info.param.hook ? "_f32" : "_shipped");
                           for (char& c : name)
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           return name;
                         });

}  // namespace
}  // namespace tercet::model
