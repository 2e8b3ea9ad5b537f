// The trained pair of tests/data/tiny against its reference: perplexity chunk by chunk and greedy ids with
// float32 arithmetic, and perplexity with the weights as they ship.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "model/decoder_harness.h"
#include "model/package_text.h"
#include "model/rounded_tensors.h"

namespace tercet::model {
namespace {

constexpr int kChunk = 512;  // tokens, each chunk on its own from position 0

std::string tiny(const std::string& name) { return std::string(TERCET_TEST_DATA) + "/tiny/" + name; }

std::string read_file(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

const nlohmann::json& reference() {
  static const nlohmann::json reference = nlohmann::json::parse(read_file(tiny("reference.json")));
  return reference;
}

// The negative log-likelihoods of each chunk's tokens at positions 1 to 511, summed.
std::vector<double> chunk_nll(DecoderHarness& harness, const std::vector<int32_t>& tokens) {
  const size_t vocab = harness.vocab();
  std::vector<double> sums;
  for (size_t at = 0; at + kChunk <= tokens.size(); at += kChunk) {
    const std::vector<int32_t> chunk(tokens.begin() + static_cast<std::ptrdiff_t>(at),
                                     tokens.begin() + static_cast<std::ptrdiff_t>(at + kChunk));
    const std::vector<float> logits = harness.run({{chunk, 0, 0, true}});
    double nll = 0;
    for (size_t i = 0; i + 1 < kChunk; ++i) {
      const float* row = logits.data() + i * vocab;
      const auto max = static_cast<double>(*std::max_element(row, row + vocab));
      double sum = 0;
      for (size_t v = 0; v < vocab; ++v) sum += std::exp(static_cast<double>(row[v]) - max);
      nll += max + std::log(sum) - static_cast<double>(row[chunk[i + 1]]);
    }
    sums.push_back(nll);
  }
  return sums;
}

DecoderHarness::Options options(bool with_hook) {
  DecoderHarness::Options options;
  options.device.widen_weights = with_hook;
  options.kv_type = with_hook ? backend::KvType::kF32 : backend::KvType::kF16;
  options.num_blocks = kChunk / kv::kBlockTokens;
  return options;
}

// The perplexity of each chunk of each text, and of all together, may be off by this fraction.
void expect_perplexity(DecoderHarness& harness, const std::string& model, double tolerance) {
  const auto text = open_text(tiny(model));
  ASSERT_TRUE(text.ok()) << text.error().to_string();
  for (const char* kind : {"code", "wiki"}) {
    const auto& expected = reference()["perplexity"][model][kind];
    const std::vector<int32_t> tokens =
        text->tokenizer.encode(read_file(tiny(std::string("eval-") + kind + ".txt")));
    ASSERT_EQ(tokens.size(), expected["tokens"].get<size_t>());
    const std::vector<double> nll = chunk_nll(harness, tokens);
    double total = 0, expected_total = 0, worst = 0;
    for (size_t i = 0; i < nll.size(); ++i) {
      const auto chunk = expected["chunk_nll_1_511"][i].get<double>();
      total += nll[i];
      expected_total += chunk;
      worst = std::max(worst, std::fabs(std::expm1((nll[i] - chunk) / (kChunk - 1))));
    }
    const double scored = static_cast<double>(nll.size()) * (kChunk - 1);
    const double off = std::expm1((total - expected_total) / scored);
    std::printf("%s, %s: perplexity %.3f, %+.4f %% from the reference; worst chunk of %zu %.4f %%\n",
                model.c_str(), kind, std::exp(total / scored), off * 100, nll.size(), worst * 100);
    EXPECT_LE(std::fabs(off), tolerance);
    EXPECT_LE(worst, tolerance);
  }
}

TEST(TinyPair, PerplexityWithFloat32Arithmetic) {
  for (const char* model : {"target", "draft"}) {
    DecoderHarness harness(tiny(model), options(true));
    expect_perplexity(harness, model, 0.001);
  }
}

TEST(TinyPair, PerplexityAsShipped) {
  for (const char* model : {"target", "draft"}) {
    DecoderHarness harness(tiny(model), options(false));
    expect_perplexity(harness, model, 0.005);
  }
}

TEST(TinyPair, PerplexityInQ8_0) {
  for (const char* model : {"target", "draft"}) {
    auto files = open_model_files(tiny(model));
    ASSERT_TRUE(files.ok());
    files->tensors = rounded(files->tensors, DType::kQ8_0);
    DecoderHarness harness(*std::move(files), options(false));
    expect_perplexity(harness, model, 0.005);
  }
}

TEST(TinyPair, GreedyIds) {
  constexpr double kTooClose = 1e-4;
  for (const std::string model : {"target", "draft"}) {
    DecoderHarness harness(tiny(model), options(true));
    for (const auto& prompt : reference()["prompts"]) {
      const auto expected = prompt[model + "_ids"].get<std::vector<int32_t>>();
      auto tokens = prompt["ids"].get<std::vector<int32_t>>();
      harness.restart(2);
      std::vector<float> logits = harness.run({{tokens, 0, 0, true}});
      for (size_t step = 0; step < expected.size(); ++step) {
        if (prompt[model + "_gaps"][step].get<double>() < kTooClose) break;
        const auto last = logits.end() - static_cast<std::ptrdiff_t>(harness.vocab());
        ASSERT_EQ(std::max_element(last, logits.end()) - last, expected[step]) << "step " << step;
        logits = harness.run({{{expected[step]}, static_cast<int>(tokens.size() + step), 0, true}});
      }
    }
  }
}

}  // namespace
}  // namespace tercet::model
