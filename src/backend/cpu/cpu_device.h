// The CPU device: packed weights (quant/packed.h), KV in blocks whose lanes are keys, kernels by instruction
// set.
#pragma once

#include <memory>

#include "backend/cpu/kernels.h"
#include "backend/device.h"

namespace tercet::backend {

struct CpuDeviceOptions {
  Isa isa = best_isa();
  // Widens quantized weights to F32 at load, so that activations are not quantized either: for comparing with
  // reference implementations.
  bool widen_weights = false;
};

std::unique_ptr<Device> make_cpu_device(const CpuDeviceOptions& options);

}  // namespace tercet::backend
