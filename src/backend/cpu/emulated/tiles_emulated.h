// What isa/tiles_amx.h does, in plain code, for machines without AMX.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/float16.h"

namespace tercet::backend {
namespace TERCET_ISA {

class Tiles {
 public:
  explicit Tiles(int row_bytes) { row_bytes_ = row_bytes; }
  ~Tiles() { row_bytes_ = 0; }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

  template <int t>
  static void zero() {
    std::memset(tiles_[t], 0, sizeof(tiles_[t]));
  }
  template <int t, int kStride = 64>
  static void load(const void* from) {
    zero<t>();
    const bool is_a = t == 4 || t == 5;
    for (int row = 0; row < (t < 6 ? 16 : row_bytes_ / 4); ++row)
      std::memcpy(tiles_[t][row], static_cast<const std::byte*>(from) + row * kStride,
                  static_cast<size_t>(is_a ? row_bytes_ : 64));
  }
  template <int t>
  static void store(void* to) {
    std::memcpy(to, tiles_[t], sizeof(tiles_[t]));
  }
  template <int c, int a, int b>
  static void dot_signed() {
    dot<c, a, b, int8_t>();
  }
  template <int c, int a, int b>
  static void dot_unsigned() {
    dot<c, a, b, uint8_t>();
  }
  template <int c, int a, int b>
  static void dot_bf16() {
    for (int row = 0; row < 16; ++row) {
      for (int column = 0; column < 16; ++column) {
        float sums[2] = {};  // of even and of odd inputs
        for (int pair = 0; pair < row_bytes_ / 4; ++pair)
          for (int odd = 0; odd < 2; ++odd)
            sums[odd] = std::fma(bf16_to_f32(at<uint16_t>(tiles_[a][row], 2 * pair + odd)),
                                 bf16_to_f32(at<uint16_t>(tiles_[b][pair], 2 * column + odd)), sums[odd]);
        const float sum = at<float>(tiles_[c][row], column) + (sums[0] + sums[1]);
        std::memcpy(tiles_[c][row] + column * 4, &sum, 4);
      }
    }
  }

 private:
  template <class T>
  static T at(const std::byte* row, int i) {
    T value;
    std::memcpy(&value, row + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    return value;
  }
  template <int c, int a, int b, class T>
  static void dot() {
    for (int row = 0; row < 16; ++row) {
      for (int column = 0; column < 16; ++column) {
        auto sum = at<int32_t>(tiles_[c][row], column);
        for (int k = 0; k < row_bytes_; ++k)
          sum += at<int8_t>(tiles_[a][row], k) * at<T>(tiles_[b][k / 4], column * 4 + k % 4);
        std::memcpy(tiles_[c][row] + column * 4, &sum, 4);
      }
    }
  }

  // Of the calling thread, as the processor's are.
  static inline thread_local std::byte tiles_[8][16][64];
  static inline thread_local int row_bytes_ = 0;
};

}  // namespace TERCET_ISA
}  // namespace tercet::backend
