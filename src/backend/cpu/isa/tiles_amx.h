// The matrix tiles of AMX: registers of 16 rows of 64 bytes. Included only by files that run where Isa::kAmx
// is available; emulated/tiles_emulated.h stands in for it in a test.
//
// In assembly with operands as large as what is read or written: GCC 12's intrinsics tell the compiler of an
// address only, so that it drops stores to memory which nothing but a tile reads, the configuration first of
// all.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tercet::backend {
namespace TERCET_ISA {

// Tiles 0 to 3 are sums C of 16 x 16 lanes of 32 bits; 4 and 5 are A, 16 rows of activations; 6 and 7 are B,
// groups of four bytes (or pairs of BF16) of 16 outputs. C += A B. The tiles of a thread are configured while
// an object lives.
class Tiles {
 public:
  // Bytes of a row of A; B has as many for each of its 16 columns. A multiple of 4, at most 64.
  explicit Tiles(int row_bytes) {
    struct alignas(64) {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t row_bytes[16] = {};
      uint8_t rows[16] = {};
    } config;
    for (int t = 0; t < 8; ++t) {
      config.rows[t] = static_cast<uint8_t>(t < 6 ? 16 : row_bytes / 4);
      config.row_bytes[t] = static_cast<uint16_t>(t == 4 || t == 5 ? row_bytes : 64);
    }
    static_assert(sizeof(config) == 64);
    asm volatile("ldtilecfg %0" ::"m"(config));
  }
  ~Tiles() { asm volatile("tilerelease"); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

  template <int t>
  static void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(t));
  }
  // Rows of tile t, kStride bytes apart.
  template <int t, int kStride = 64>
  static void load(const void* from) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(int64_t{kStride}), "i"(t),
                 "m"(*static_cast<const std::byte(*)[16 * kStride]>(from)));
  }
  // The sums of tile t, [16][16].
  template <int t>
  static void store(void* to) {
    asm volatile("tilestored %%tmm%c2, (%1,%3,1)"
                 : "=m"(*static_cast<std::byte(*)[1024]>(to))
                 : "r"(to), "i"(t), "r"(int64_t{64}));
  }
  // C += A B of int8.
  template <int c, int a, int b>
  static void dot_signed() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(c), "i"(a), "i"(b));
  }
  // The same with unsigned bytes in B.
  template <int c, int a, int b>
  static void dot_unsigned() {
    asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(c), "i"(a), "i"(b));
  }
  // Of BF16, as docs/arithmetic.md adds them.
  template <int c, int a, int b>
  static void dot_bf16() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(c), "i"(a), "i"(b));
  }
};

}  // namespace TERCET_ISA
}  // namespace tercet::backend
