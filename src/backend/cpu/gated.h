// The gated activations of a pair of values, for any vector type of base/vec_math.h.
#pragma once

#include "backend/device.h"
#include "base/vec_math.h"

namespace tercet::backend {

template <class V>
V gated(Activation activation, V gate, V up) {
  switch (activation) {
    case Activation::kSilu: return vec::silu(gate) * up;
    case Activation::kGeluTanh: return vec::gelu_tanh(gate) * up;
    case Activation::kClampedSwiGlu: break;
  }
  // In this order of arguments a value that is not a number stays one.
  const V limit = V::all(kSwiGluLimit);
  const V g = min(limit, gate);
  const V u = min(limit, max(V::all(-kSwiGluLimit), up));
  return (u + V::all(1.0f)) * (g * vec::sigmoid(V::all(kSwiGluAlpha) * g));
}

}  // namespace tercet::backend
