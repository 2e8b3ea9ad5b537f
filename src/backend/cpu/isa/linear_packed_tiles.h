// Many rows on a matrix unit: sixteen rows of activations times sixteen outputs at once. Codes become int8
// once for all rows; those with sub-scales become two int8 parts of code times sub-scale, so that a whole
// block of 256 inputs is one sum of products, the same integer as everywhere else.
//
// `Tiles` is the matrix unit (tiles_amx.h), `Ops` the vectors that unpack before and scale afterwards.
#pragma once

#include <algorithm>
#include <cstring>

#include "backend/cpu/isa/linear_packed.h"

namespace tercet::backend {

template <class Tiles, class Ops, quant::PackedShape L>
struct TiledLinear {
  using I = typename Ops::I;
  using F = typename Ops::F;
  using Codes = PackedCodes<typename Ops::WithoutVnni, L>;
  static constexpr int kRows = 16;
  static constexpr bool kWholeSpan = L.block == quant::kSpan;
  // A code times the minimum's kind of sub-scale stays unsigned: bits are cut from the scale, and a 16-bit
  // product holds two 8-bit ones. Others are signed and are cut after the product.
  static constexpr bool kUnsigned = L.sub == quant::SubScale::kScaleMin || L.sub == quant::SubScale::kNibbles;
  static constexpr int kParts =
      L.sub == quant::SubScale::kScaleMin || L.sub == quant::SubScale::kPair ? 2 : 1;
  static constexpr int kHighShift = kUnsigned ? 3 : 8;   // of the high part
  static constexpr int kInputs = std::min(L.block, 64);  // of a tile
  static constexpr int kRun = std::min(L.activation_block(), 64);
  static constexpr int kPairs = kWholeSpan && L.has_min ? 2 * Codes::kPairQuads : 0;

  // A span of a panel, unpacked.
  struct alignas(64) Weights {
    std::byte codes[kParts][quant::kSpan / 4][64];  // the low part first; [group][output * 4]
  };
  struct Scales {
    F d[quant::kSpan / L.block], m[quant::kSpan / L.block];  // [float block]
    I pairs[std::max(kPairs, 1)];                            // as PackedCodes::Pairs
  };

  static void store_group(I code, I scale, int group, Weights& out) {
    if constexpr (!Codes::kHasSub) {
      Ops::store(out.codes[0][group], code);
    } else if constexpr (kUnsigned && kParts == 1) {
      Ops::store(out.codes[0][group], Ops::mul16(code, scale));
    } else if constexpr (kUnsigned) {
      constexpr int kLow = (1 << kHighShift) - 1;
      Ops::store(out.codes[0][group], Ops::mul16(code, Ops::template and_words<kLow>(scale)));
      Ops::store(out.codes[1][group], Ops::mul16(code, Ops::shift_right16(scale, kHighShift)));
    } else {
      const I even = Ops::mul16(Ops::shift_right16_signed(Ops::shift_left16(code, 8), 8), scale);
      const I odd = Ops::mul16(Ops::shift_right16_signed(code, 8), scale);
      const auto bytes = [](I e, I o) {
        return Ops::or_bits(Ops::template and_words<0xFF>(e), Ops::shift_left16(o, 8));
      };
      const auto high = [](I v) { return Ops::shift_right16(Ops::add16(v, Ops::all16(128)), 8); };
      Ops::store(out.codes[0][group], bytes(even, odd));
      Ops::store(out.codes[1][group], bytes(high(even), high(odd)));
    }
  }

  static void unpack(const quant::PackedLayout& layout, const std::byte* span, int chunks, Weights& out,
                     Scales& scale) {
    const quant::SpanOffsets at = quant::span_offsets(L, chunks);
    const I table = Codes::load_table(layout);
    I scales[16];
    if constexpr (Codes::kHasSub) {
      for (int quad = 0; quad < Codes::kQuads; ++quad) {
        I words = Codes::scale_quad(span + at.sub, quad);
        for (int i = 0; i < 4; ++i) {
          scales[quad * 4 + i] = Ops::twice(Codes::top_scale(words));
          words = Ops::shift_left32(words, 8);
        }
      }
    }
    for (int c = 0; c < chunks; ++c) {
#pragma GCC unroll 8
      for (int g = 0; g < 8; ++g) {
        I code = Codes::group(span + c * at.codes_per_chunk, table, g);
        if constexpr (L.zero != 0) code = Ops::add8(code, Ops::all8(-L.zero));
        store_group(code, scales[Codes::kHasSub ? (c * 8 + g) * 4 / L.sub_block() : 0], c * 8 + g, out);
      }
    }
    for (int b = 0; b < chunks * quant::kChunk / L.block; ++b) {
      scale.d[b] = Codes::load_d(layout, span + at.d, b, 0);
      if constexpr (L.has_min) scale.m[b] = Codes::load_m(span + at.m, b, 0);
    }
    for (int quad = 0; quad < kPairs / 2; ++quad) {
      const auto pairs = Codes::pair_quad(span + at.sub, quad);
      scale.pairs[2 * quad] = pairs.low;
      scale.pairs[2 * quad + 1] = pairs.high;
    }
  }

  template <int c, int a, int b>
  static void dot() {
    if constexpr (kUnsigned) {
      Tiles::template dot_unsigned<c, a, b>();
    } else {
      Tiles::template dot_signed<c, a, b>();
    }
  }

  // Sums of [16][16] of 32 bits.
  using Sums = std::byte[kRows][64];

  // A tile of rows at one block of its activations, and its outputs of a panel.
  struct TileRows {
    const std::byte* q;
    const float* d;
    const int32_t* sums;
    float* acc;  // [16][16]
  };
  static TileRows tile_rows(const QuantizedRows& x, int64_t tile, int64_t span, float* acc) {
    const int64_t block = span * (quant::kSpan / x.block);
    return {reinterpret_cast<const std::byte*>(x.q_tile(tile) + span * quant::kSpan * kRows),
            x.d_tile(tile) + block * kRows, x.sums_tile(tile) + block * sums_per_block(x.block) * kRows, acc};
  }

  // A step multiplies a span of kPanels panels, of one block, with a tile of rows. Meanwhile the products of
  // the step before it are scaled: the matrix unit and the vectors work side by side.
  static constexpr int kPanels = 4 / kParts;
  struct Products {
    Sums parts[kPanels][kParts];
  };
  struct Step {
    const Weights* weights;  // [kPanels]
    const Scales* scales;    // [kPanels]
    TileRows rows;           // acc of the first panel
    int64_t acc_stride;      // from a panel's to the next, in floats
    Products* products;
  };

  // Scales the products of a step, row by row, and adds them to the outputs. All that rows share is read at
  // once: stores of outputs would make the compiler read it again.
  class Scaler {
   public:
    explicit Scaler(const Step& step)
        : rows_(step.rows), acc_stride_(step.acc_stride), products_(step.products) {
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) {
        d_[p] = step.scales[p].d[0];
        if constexpr (L.has_min) m_[p] = step.scales[p].m[0];
#pragma GCC unroll 8
        for (int i = 0; i < kPairs; ++i) pairs_[p][i] = step.scales[p].pairs[i];
      }
    }

    [[gnu::always_inline]] void add_row(int row) const {
      I sums[std::max(kPairs, 1)];
#pragma GCC unroll 8
      for (int i = 0; i < kPairs; ++i)
        sums[i] = Ops::broadcast4(rows_.sums + (Codes::pair_sums(0) + i) * kRows + row);
      const F d = Ops::all(rows_.d[row]);
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) {
        const Sums(&parts)[kParts] = products_->parts[p];
        I isum = Ops::load(parts[0][row]);
        if constexpr (kParts == 2)
          isum = Ops::add32(isum, Ops::shift_left32(Ops::load(parts[1][row]), kHighShift));
        F t = Ops::to_float(isum);
        if constexpr (L.has_min) {
          I msum = Ops::zero();
#pragma GCC unroll 8
          for (int i = 0; i < kPairs; ++i) msum = Ops::madd_add(msum, pairs_[p][i], sums[i]);
          t = Ops::fmsub(d_[p], t, Ops::mul(m_[p], Ops::to_float(msum)));
        } else {
          t = Ops::mul(d_[p], t);
        }
        float* acc = rows_.acc + p * acc_stride_ + row * kRows;
        Ops::store_f32(acc, Ops::fma(d, t, Ops::load_f32(acc)));
      }
    }

   private:
    TileRows rows_;
    int64_t acc_stride_;
    const Products* products_;
    F d_[kPanels], m_[kPanels];
    I pairs_[kPanels][std::max(kPairs, 1)];
  };

  template <bool kScaleBefore>
  [[gnu::noinline]] static void run_step(const Step& step, const Step& before) {
    const Scaler scaler(before);
    const auto scale_row = [&](int row) {
      if constexpr (kScaleBefore) scaler.add_row(row);
    };
    // A call would put the scaler's registers into memory.
    const auto add_tile = [&]<int t>() __attribute__((always_inline)) {
      Tiles::template load<4>(step.rows.q + t * 1024);
      Tiles::template load<6>(step.weights[0].codes[0][t * 16]);
      dot<0, 4, 6>();
      scale_row(t * 4);
      Tiles::template load<7>(step.weights[kPanels / 4].codes[kParts - 1][t * 16]);
      dot<1, 4, 7>();
      scale_row(t * 4 + 1);
      Tiles::template load<6>(step.weights[kPanels / 2].codes[0][t * 16]);
      dot<2, 4, 6>();
      scale_row(t * 4 + 2);
      Tiles::template load<7>(step.weights[kPanels - 1].codes[kParts - 1][t * 16]);
      dot<3, 4, 7>();
      scale_row(t * 4 + 3);
    };
    Tiles::template zero<0>();
    Tiles::template zero<1>();
    Tiles::template zero<2>();
    Tiles::template zero<3>();
    add_tile.template operator()<0>();
    add_tile.template operator()<1>();
    add_tile.template operator()<2>();
    add_tile.template operator()<3>();
    Sums* sums = &step.products->parts[0][0];
    Tiles::template store<0>(sums[0]);
    Tiles::template store<1>(sums[1]);
    Tiles::template store<2>(sums[2]);
    Tiles::template store<3>(sums[3]);
  }

  class Pipeline {
   public:
    void run(Step step) {
      step.products = &products_[count_++ % 2];
      count_ == 1 ? run_step<false>(step, step) : run_step<true>(step, before_);
      before_ = step;
    }
    void finish() {
      const Scaler scaler(before_);
      for (int row = 0; row < kRows; ++row) scaler.add_row(row);
      count_ = 0;
    }

   private:
    alignas(64) Products products_[2];
    Step before_;
    int64_t count_ = 0;
  };

  // Float blocks of at most 32 inputs need their sums scaled one by one. Here `block` counts from the first
  // of some spans of a panel: their codes, and the tile's activations, follow each other.
  static constexpr int kBlocks = quant::kSpan / L.block;

  // Sums of a block in tile t.
  template <int t>
  static void multiply_block(const Weights* w, const TileRows& rows, int block) {
    Tiles::template load<4 + t % 2, kRun>(rows.q + block * L.block / kRun * kRun * kRows +
                                          block * L.block % kRun);
    Tiles::template load<6 + t % 2>(w[block / kBlocks].codes[0][block % kBlocks * L.block / 4]);
    Tiles::template zero<t>();
    dot<t, 4 + t % 2, 6 + t % 2>();
  }

  static void scale_block(const Sums& sums, const Scales* scales, const TileRows& rows, int block,
                          F (&acc)[kRows]) {
    const int activations = block * L.block / quant::kChunk;
    const Scales& scale = scales[block / kBlocks];
    const F d = scale.d[block % kBlocks];
#pragma GCC unroll 16
    for (int row = 0; row < kRows; ++row) {
      F t = Ops::to_float(Ops::load(sums[row]));
      if constexpr (L.has_min) {
        const I msum =
            Ops::madd_add(Ops::zero(), Ops::all16(1), Ops::broadcast4(rows.sums + activations * kRows + row));
        t = Ops::fmsub(d, t, Ops::mul(scale.m[block % kBlocks], Ops::to_float(msum)));
      } else {
        t = Ops::mul(d, t);
      }
      acc[row] = Ops::fma(Ops::all(rows.d[activations * kRows + row]), t, acc[row]);
    }
  }

  // Multiplies four blocks from `block` on and, meanwhile, scales the four before them.
  template <bool kScaleBefore>
  static void four_blocks(const Weights* w, const Scales* scales, const TileRows& rows, int block,
                          Sums (&sums)[4], const Sums (&before)[4], F (&acc)[kRows]) {
    const auto one = [&]<int i>() {
      multiply_block<i>(w, rows, block + i);
      if constexpr (i > 0) Tiles::template store<i - 1>(sums[i - 1]);
      if constexpr (kScaleBefore) scale_block(before[i], scales, rows, block - 4 + i, acc);
    };
    one.template operator()<0>();
    one.template operator()<1>();
    one.template operator()<2>();
    one.template operator()<3>();
    Tiles::template store<3>(sums[3]);
  }

  // Adds all blocks of some spans of a panel to acc.
  [[gnu::noinline]] static void add_blocks(const Weights* w, const Scales* scales, int blocks,
                                           const TileRows& rows) {
    F acc[kRows];
#pragma GCC unroll 16
    for (int row = 0; row < kRows; ++row) acc[row] = Ops::load_f32(rows.acc + row * kRows);
    alignas(64) Sums sums[2][4];
    int b = 0;
    if (blocks >= 4) {
      four_blocks<false>(w, scales, rows, 0, sums[0], sums[1], acc);
      for (b = 4; b + 4 <= blocks; b += 4)
        four_blocks<true>(w, scales, rows, b, sums[b / 4 % 2], sums[(b / 4 + 1) % 2], acc);
      for (int i = 0; i < 4; ++i) scale_block(sums[(b / 4 + 1) % 2][i], scales, rows, b - 4 + i, acc);
    }
    for (; b < blocks; ++b) {
      multiply_block<0>(w, rows, b);
      Tiles::template store<0>(sums[0][0]);
      scale_block(sums[0][0], scales, rows, b, acc);
    }
#pragma GCC unroll 16
    for (int row = 0; row < kRows; ++row) Ops::store_f32(rows.acc + row * kRows, acc[row]);
  }

  static constexpr int64_t kMaxTiles = 32, kMaxPanels = 8;
  static_assert(kMaxPanels % kPanels == 0);
  static constexpr int64_t kTileOutputs = kRows * kRows;

  // Some tiles of rows times up to kPanels panels.
  struct Strip {
    const LinearTask& task;
    const QuantizedRows& x;
    int64_t tile, num_tiles;
    int64_t panel, num_panels;
    float* acc;  // [panels][kMaxTiles][16][16]

    // Those that are not there repeat the last one.
    const std::byte* span(int64_t p, int64_t s) const {
      return task.panels + (panel + std::min(p, num_panels - 1)) * task.panel_stride +
             s * quant::span_offsets(L, 8).size;
    }
    // Asks for span s of the panel after this one into the second cache.
    void prefetch_next(int64_t s) const {
      for (int i = 0; i < quant::span_offsets(L, 8).size; i += 64)
        Ops::prefetch_far(span(0, s) + task.panel_stride + i);
    }
    // Asks for span s into the second cache.
    void prefetch(int64_t s) const {
      for (int64_t p = 0; p < num_panels; ++p)
        for (int i = 0; i < quant::span_offsets(L, 8).size; i += 64) Ops::prefetch_far(span(p, s) + i);
    }
  };

  // Spans that are unpacked at once.
  static constexpr int kUnpacked = kWholeSpan ? kPanels : 6;

  static void run(const quant::PackedLayout& layout, const LinearTask& task, const QuantizedRows& x) {
    const Tiles tiles(kInputs);
    alignas(64) float acc[kMaxPanels][kMaxTiles][kTileOutputs];
    const int64_t all_tiles = (task.rows + kRows - 1) / kRows, spans = quant::num_spans(task.inputs);
    Weights weights[kUnpacked];
    Scales scales[2][kUnpacked];  // of this strip and the one before
    Pipeline pipeline;
    int64_t turn = 0;
    const auto add_span = [&](const Strip& strip, int64_t s) {
      const int chunks = quant::span_chunks(task.inputs, s);
      Scales* strip_scales = scales[turn++ % 2];
      for (int64_t p = 0; p < kPanels; ++p)
        unpack(layout, strip.span(p, s), chunks, weights[p], strip_scales[p]);
      for (int64_t i = 0; i < strip.num_tiles; ++i) {
        const TileRows rows = tile_rows(x, strip.tile + i, s, strip.acc + i * kTileOutputs);
        pipeline.run({weights, strip_scales, rows, kMaxTiles * kTileOutputs, nullptr});
      }
    };
    // Spans of one panel, as many as stay in the first cache, so that the sums of outputs stay in registers.
    const auto add_spans = [&](const Strip& strip, int64_t first, int64_t count) {
      int chunks = 0;
      for (int64_t i = 0; i < count; ++i) {
        const int span_chunks = quant::span_chunks(task.inputs, first + i);
        unpack(layout, strip.span(0, first + i), span_chunks, weights[i], scales[0][i]);
        strip.prefetch_next(first + i);
        chunks += span_chunks;
      }
      for (int64_t i = 0; i < strip.num_tiles; ++i) {
        add_blocks(weights, scales[0], chunks * quant::kChunk / L.block,
                   tile_rows(x, strip.tile + i, first, strip.acc + i * kTileOutputs));
      }
    };
    for (int64_t tile = 0; tile < all_tiles; tile += kMaxTiles) {
      const int64_t num_tiles = std::min(kMaxTiles, all_tiles - tile);
      for (int64_t panel = task.panel_begin; panel < task.panel_end; panel += kMaxPanels) {
        const int64_t num_panels = std::min(kMaxPanels, task.panel_end - panel);
        for (auto& panel_acc : acc)
          std::memset(panel_acc, 0, static_cast<size_t>(num_tiles) * sizeof(panel_acc[0]));
        const auto strip = [&](int64_t p, int64_t most) {
          return Strip{task, x, tile, num_tiles, panel + p, std::min(most, num_panels - p), acc[p][0]};
        };
        if constexpr (kWholeSpan) {
          // Strips take turns span by span, so that the activations of a span stay in the second cache.
          for (int64_t s = 0; s < spans; ++s) {
            for (int64_t p = 0; p < num_panels; p += kPanels) {
              const bool is_last = p + kPanels >= num_panels;
              if (!is_last || s + 1 < spans)
                strip(is_last ? 0 : p + kPanels, kPanels).prefetch(is_last ? s + 1 : s);
              add_span(strip(p, kPanels), s);
            }
          }
          pipeline.finish();
        } else {
          for (int64_t s = 0; s < spans; s += kUnpacked) {
            for (int64_t p = 0; p < num_panels; ++p)
              add_spans(strip(p, 1), s, std::min<int64_t>(kUnpacked, spans - s));
          }
        }
        for (int64_t row = 0; row < std::min(num_tiles * kRows, task.rows - tile * kRows); ++row) {
          for (int64_t p = 0; p < num_panels; ++p) {
            // Nobody has read y: its lines come from far away.
            Ops::prefetch_near(reinterpret_cast<const std::byte*>(
                task.y + (tile * kRows + row + 12) * task.y_stride + (panel + p) * quant::kPanelRows));
            PackedLinear<Ops, L>::store(task, tile * kRows + row, panel + p, 0,
                                        Ops::load_f32(acc[p][0] + row * kRows));
          }
        }
      }
    }
  }
};

}  // namespace tercet::backend
