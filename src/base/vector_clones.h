// TERCET_VECTOR_CLONES before a function's definition compiles it, with all that it calls inlined, once more
// for processors with AVX2 and FMA and for those with AVX-512, and picks at run time. Its results keep their
// bits: nothing lets the compiler fuse or reorder floating-point operations. For plain loops outside the
// backend.
//
// Sanitizers do without, since the run-time choice comes before they are ready.
#pragma once

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__OPTIMIZE__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TERCET_VECTOR_CLONES \
  __attribute__((flatten, target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define TERCET_VECTOR_CLONES
#endif
