// Asking memory for what a loop reads later.
#pragma once

#include <cstddef>

#include "backend/cpu/kernels.h"

namespace tercet::backend {

// The lines so many bytes behind p, with the integer operations Ops of an instruction set.
template <class Ops>
inline void prefetch_beyond(const std::byte* p, Prefetch ahead) {
  if (ahead.near != 0) Ops::prefetch_near(p + ahead.near);
  if (ahead.far != 0) Ops::prefetch_far(p + ahead.far);
}

}  // namespace tercet::backend
