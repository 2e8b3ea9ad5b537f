// Norms, activations and rotary embedding in plain code.
#include <cmath>

#include "backend/cpu/gated.h"
#include "backend/cpu/scalar/scalar_kernels.h"
#include "base/vec_math.h"

namespace tercet::backend::scalar {

bool rms_norm(const float* x, const float* weight, int64_t n, float eps, float* out) {
  float lanes[16] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i % 16] = std::fma(x[i], x[i], lanes[i % 16]);
  for (int width = 8; width > 0; width /= 2)
    for (int lane = 0; lane < width; ++lane) lanes[lane] = lanes[lane] + lanes[lane + width];
  const float factor = 1.0f / std::sqrt(lanes[0] / static_cast<float>(n) + eps);
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] * factor * weight[i];
  return std::isfinite(lanes[0]);
}

bool add(float* x, const float* y, int64_t n) {
  bool finite = true;
  for (int64_t i = 0; i < n; ++i) {
    x[i] = x[i] + y[i];
    finite = finite && std::isfinite(x[i]);
  }
  return finite;
}

void add_scaled(float* x, const float* y, int64_t n, float factor) {
  for (int64_t i = 0; i < n; ++i) x[i] = std::fma(y[i], factor, x[i]);
}

void scale(float* x, int64_t n, float factor) {
  for (int64_t i = 0; i < n; ++i) x[i] = x[i] * factor;
}

void gate(Activation activation, const float* gate, const float* up, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = gated(activation, ScalarF32{gate[i]}, ScalarF32{up[i]}).v;
}

void soft_cap(float* x, int64_t n, float cap) {
  for (int64_t i = 0; i < n; ++i) x[i] = cap * vec::tanh(ScalarF32{x[i] / cap}).v;
}

void rope(float* x, const float* cos, const float* sin, int half) {
  for (int i = 0; i < half; ++i) {
    const float a = x[i], b = x[i + half];
    x[i] = std::fma(a, cos[i], -(b * sin[i]));
    x[i + half] = std::fma(b, cos[i], a * sin[i]);
  }
}

}  // namespace tercet::backend::scalar
