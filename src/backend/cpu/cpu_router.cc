#include "backend/cpu/cpu_router.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/vec_math.h"

namespace tercet::backend {
namespace {

// Sixteen lanes by index, then a tree: the order of every sum over a row.
float sum(const std::vector<float>& values) {
  float lanes[16] = {};
  for (size_t i = 0; i < values.size(); ++i) lanes[i % 16] = lanes[i % 16] + values[i];
  for (int width = 8; width > 0; width /= 2)
    for (int lane = 0; lane < width; ++lane) lanes[lane] = lanes[lane] + lanes[lane + width];
  return lanes[0];
}

void softmax(std::vector<float>& values) {
  const float max = *std::max_element(values.begin(), values.end());
  for (float& value : values) value = vec::exp(ScalarF32{value - max}).v;
  const float total = sum(values);
  for (float& value : values) value = value / total;
}

// The index of the largest value in [begin, end) among those not `taken`, the lowest of equal ones; -1 when
// all are taken. A comparison with a value that is not a number counts as false.
int best(const std::vector<float>& values, const std::vector<bool>& taken, int begin, int end) {
  int found = -1;
  for (int i = begin; i < end; ++i) {
    const auto at = static_cast<size_t>(i);
    if (!taken[at] && (found < 0 || values[at] > values[static_cast<size_t>(found)])) found = i;
  }
  return found;
}

// Marks the experts outside the best groups as taken.
void exclude_groups(const std::vector<float>& scores, const RouterSpec& spec, std::vector<bool>& taken) {
  const int size = spec.num_experts / spec.num_groups;
  std::vector<float> group_scores;
  for (int group = 0; group < spec.num_groups; ++group) {
    const int begin = group * size, end = begin + size;
    const int first = best(scores, taken, begin, end);
    float score = scores[static_cast<size_t>(first)];
    if (spec.group_score == RouterSpec::GroupScore::kSumOfTwoBest && size > 1) {
      taken[static_cast<size_t>(first)] = true;
      score = score + scores[static_cast<size_t>(best(scores, taken, begin, end))];
      taken[static_cast<size_t>(first)] = false;
    }
    group_scores.push_back(score);
  }
  std::vector<bool> kept(group_scores.size());
  for (int i = 0; i < spec.num_groups_used; ++i)
    kept[static_cast<size_t>(best(group_scores, kept, 0, spec.num_groups))] = true;
  for (int expert = 0; expert < spec.num_experts; ++expert)
    if (!kept[static_cast<size_t>(expert / size)]) taken[static_cast<size_t>(expert)] = true;
}

}  // namespace

bool choose_experts(const float* logits, const float* correction, const RouterSpec& spec, int32_t* experts,
                    float* weights) {
  std::vector<float> scores(logits, logits + spec.num_experts);
  const bool finite = std::all_of(scores.begin(), scores.end(), [](float v) { return std::isfinite(v); });
  if (spec.scores == RouterSpec::Scores::kSoftmax) softmax(scores);
  if (spec.scores == RouterSpec::Scores::kSigmoid)
    for (float& score : scores) score = vec::sigmoid(ScalarF32{score}).v;
  std::vector<float> choice = scores;
  if (correction != nullptr)
    for (size_t i = 0; i < choice.size(); ++i) choice[i] = choice[i] + correction[i];

  std::vector<bool> taken(choice.size());
  if (spec.num_groups > 1) exclude_groups(choice, spec, taken);
  for (int i = 0; i < spec.num_used; ++i) {
    experts[i] = best(choice, taken, 0, spec.num_experts);
    taken[static_cast<size_t>(experts[i])] = true;
  }
  std::sort(experts, experts + spec.num_used);

  std::vector<float> chosen;
  for (int i = 0; i < spec.num_used; ++i) chosen.push_back(scores[static_cast<size_t>(experts[i])]);
  if (spec.scores == RouterSpec::Scores::kSoftmaxOfChosen) softmax(chosen);
  if (spec.normalize) {
    // The addend keeps a row whose scores are all zero finite (DeepSeek V3's model code).
    const float total = sum(chosen) + 1e-20f;
    for (float& weight : chosen) weight = weight / total;
  }
  for (int i = 0; i < spec.num_used; ++i) weights[i] = chosen[static_cast<size_t>(i)] * spec.scale;
  return finite;
}

void group_by_matrix(const std::vector<int32_t>& matrices, int num_matrices, int used, CpuRoutes& routes) {
  routes.used = used;
  routes.starts.assign(static_cast<size_t>(num_matrices) + 1, 0);
  for (const int32_t matrix : matrices) ++routes.starts[static_cast<size_t>(matrix) + 1];
  for (size_t m = 1; m < routes.starts.size(); ++m) routes.starts[m] += routes.starts[m - 1];
  std::vector<int32_t> next(routes.starts.begin(), routes.starts.end() - 1);
  routes.row_of.resize(matrices.size());
  routes.copies.resize(matrices.size());
  for (size_t i = 0; i < matrices.size(); ++i) {
    const int32_t copy = next[static_cast<size_t>(matrices[i])]++;
    routes.copies[i] = copy;
    routes.row_of[static_cast<size_t>(copy)] = static_cast<int32_t>(i) / used;
  }
}

}  // namespace tercet::backend
