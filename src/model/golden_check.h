// For tests: a model compared with the golden logits of its family, in float32.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "model/decoder_harness.h"
#include "model/golden_folder.h"

namespace tercet::model {

inline constexpr float kGoldenTolerance = 2e-4f;

inline constexpr const char* kGoldenFamilies[] = {
    "deepseek_v2",   "deepseek_v3", "gemma2",      "gemma3",    "glm",     "glm4",  "gpt_oss",
    "granite",       "llama",       "llama_plain", "mistral",   "mixtral", "olmo2", "phi3",
    "phi3_longrope", "qwen2",       "qwen3",       "qwen3_moe", "smollm3"};

inline DecoderHarness::Options float_options() {
  DecoderHarness::Options options;
  options.device.widen_weights = true;
  options.kv_type = backend::KvType::kF32;
  options.num_blocks = 16;
  return options;
}

inline float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  float largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const float difference = std::abs(a[i] - b[i]);
    if (!(difference <= largest)) largest = difference;  // NaN too
  }
  return largest;
}

inline std::vector<float> logits_of(DecoderHarness& harness, const std::vector<int32_t>& ids) {
  return harness.run({{ids, 0, 0, true, harness.spec().rope_variant(static_cast<int>(ids.size()))}});
}

// What follows `ids`, the largest logit each time, every step on the KV cache.
inline std::vector<int32_t> greedy(DecoderHarness& harness, const std::vector<int32_t>& ids, size_t count) {
  std::vector<int32_t> tokens;
  std::vector<float> logits = logits_of(harness, ids);
  for (int position = static_cast<int>(ids.size());; ++position) {
    const auto last = logits.end() - static_cast<ptrdiff_t>(harness.vocab());
    tokens.push_back(static_cast<int32_t>(std::max_element(last, logits.end()) - last));
    if (tokens.size() == count) return tokens;
    logits = harness.run({{{tokens.back()}, position, 0, false}});
  }
}

inline void expect_golden(const std::string& path, const std::string& family) {
  const GoldenLogits golden = golden_logits(family);
  DecoderHarness harness(path, float_options());
  const float a = largest_difference(logits_of(harness, golden.ids_a), golden.logits_a);
  const float b = largest_difference(logits_of(harness, golden.ids_b), golden.logits_b);
  EXPECT_LE(a, kGoldenTolerance);
  EXPECT_LE(b, kGoldenTolerance);
  EXPECT_EQ(greedy(harness, golden.ids_a, golden.greedy_a.size()), golden.greedy_a);
  std::printf("%-14s largest difference %.1e\n", family.c_str(), static_cast<double>(std::max(a, b)));
}

}  // namespace tercet::model
