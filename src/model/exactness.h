// For tests: runs of a sequence whose bits can be compared.
#pragma once

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "model/decoder_harness.h"

namespace tercet::model {

inline constexpr backend::KvType kKvTypes[] = {backend::KvType::kF32,  backend::KvType::kF16,
                                               backend::KvType::kBF16, backend::KvType::kInt8,
                                               backend::KvType::kE4M3, backend::KvType::kE5M2};

// Of a test's parameter.
inline std::string kv_type_name(backend::KvType type) {
  constexpr const char* kNames[] = {"f32", "f16", "bf16", "int8", "e4m3", "e5m2"};
  return kNames[static_cast<size_t>(type)];
}

inline std::vector<int32_t> random_tokens(int count, uint32_t seed, int vocab = 49152) {
  std::mt19937 random(seed);
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % static_cast<uint32_t>(vocab));
  return tokens;
}

inline std::vector<int32_t> slice(const std::vector<int32_t>& tokens, size_t begin, size_t end) {
  return {tokens.begin() + static_cast<std::ptrdiff_t>(begin),
          tokens.begin() + static_cast<std::ptrdiff_t>(end)};
}

// Logits of every row of a sequence run alone in chunks, and the bytes of its KV blocks.
struct RunResult {
  std::vector<float> logits;
  std::vector<std::byte> kv;
  bool operator==(const RunResult& other) const {
    return logits.size() == other.logits.size() && kv == other.kv &&
           std::memcmp(logits.data(), other.logits.data(), logits.size() * sizeof(float)) == 0;
  }
};

inline std::vector<std::byte> kv_bytes(const backend::KvStore& kv, int first_block, int num_blocks) {
  std::vector<std::byte> bytes;
  for (int layer = 0; layer < static_cast<int>(kv.spec().layers.size()); ++layer) {
    for (const backend::KvRegion& region : {kv.k_region(layer), kv.v_region(layer)}) {
      const std::byte* begin = region.base + first_block * region.stride;
      bytes.insert(bytes.end(), begin, begin + num_blocks * region.stride);
    }
  }
  return bytes;
}

inline RunResult run_in_chunks(DecoderHarness& harness, const std::vector<int32_t>& tokens, size_t chunk) {
  RunResult result;
  for (size_t begin = 0; begin < tokens.size(); begin += chunk) {
    const size_t end = std::min(begin + chunk, tokens.size());
    const auto logits = harness.run({{slice(tokens, begin, end), static_cast<int>(begin), 0, true}});
    result.logits.insert(result.logits.end(), logits.begin(), logits.end());
  }
  result.kv = kv_bytes(harness.kv(), 0, kv::blocks_for_tokens(static_cast<int>(tokens.size())));
  return result;
}

inline std::vector<backend::Isa> vector_isas() {
  std::vector<backend::Isa> isas;
  for (backend::Isa isa : backend::kAllIsas)
    if (isa != backend::Isa::kScalar && backend::isa_available(isa)) isas.push_back(isa);
  return isas;
}

}  // namespace tercet::model
