#include "sample/softmax.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "base/check.h"
#include "base/vec_math.h"
#include "base/vector_clones.h"

namespace tercet::sample {
namespace {

TERCET_VECTOR_CLONES
void softmax_weights(std::span<const float> logits, float max, std::span<float> weights) {
  for (size_t i = 0; i < logits.size(); ++i) weights[i] = vec::exp(ScalarF32{logits[i] - max}).v;
}

}  // namespace

double tree_sum(std::array<double, kLanes> lanes) {
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  }
  return lanes[0];
}

TERCET_VECTOR_CLONES
float softmax_weight(float logit, float max) { return vec::exp(ScalarF32{logit - max}).v; }

double softmax_sum(std::span<const float> logits, float max) {
  constexpr size_t kChunk = 256;  // a multiple of kLanes, so that lanes continue from chunk to chunk
  std::array<double, kLanes> lanes{};
  std::array<float, kChunk> weights;
  for (size_t begin = 0; begin < logits.size(); begin += kChunk) {
    size_t size = std::min(kChunk, logits.size() - begin);
    softmax_weights(logits.subspan(begin, size), max, std::span(weights).first(size));
    size_t full = size / kLanes * kLanes;
    for (size_t i = 0; i < full; i += kLanes) {
      for (int j = 0; j < kLanes; ++j) lanes[j] += weights[i + j];
    }
    for (size_t i = full; i < size; ++i) lanes[i - full] += weights[i];
  }
  return tree_sum(lanes);
}

RowScan scan_row(std::span<const float> row) {
  TERCET_CHECK(!row.empty());
  constexpr uint32_t kExponent = 0x7f800000;
  float max[kLanes];
  uint32_t finite[kLanes];  // all ones while every element of the lane is finite
  std::fill(max, max + kLanes, -std::numeric_limits<float>::infinity());
  std::fill(finite, finite + kLanes, ~0u);
  auto visit = [&](int lane, float value) {
    max[lane] = value > max[lane] ? value : max[lane];
    finite[lane] &= -static_cast<uint32_t>((std::bit_cast<uint32_t>(value) & kExponent) != kExponent);
  };
  size_t full = row.size() / kLanes * kLanes;
  for (size_t i = 0; i < full; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) visit(j, row[i + j]);
  }
  for (size_t i = full; i < row.size(); ++i) visit(static_cast<int>(i - full), row[i]);

  RowScan scan;
  scan.max = *std::max_element(max, max + kLanes);
  scan.all_finite = std::all_of(finite, finite + kLanes, [](uint32_t mask) { return mask != 0; });
  auto best = std::find(row.begin(), row.end(), scan.max);
  scan.best = best == row.end() ? 0 : static_cast<core::TokenId>(best - row.begin());
  return scan;
}

}  // namespace tercet::sample
