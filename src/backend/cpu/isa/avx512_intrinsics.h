// The AVX-512 intrinsics: the compiler's, or stand-ins where a test runs the kernels on a processor without
// them.
#pragma once

#ifdef TERCET_EMULATE_AVX512
#include "backend/cpu/emulated/avx512_emulated.h"
#else
#include <immintrin.h>
#endif
