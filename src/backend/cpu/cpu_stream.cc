#include "backend/cpu/cpu_stream.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "backend/cpu/cpu_kv_store.h"
#include "backend/cpu/cpu_router.h"
#include "backend/cpu/cpu_weight.h"
#include "base/check.h"

namespace tercet::backend {
namespace {

// Elements that make a piece of an element-wise loop worth handing to a thread.
constexpr int64_t kPieceElements = 16384;
// Weight bytes of a piece of a linear layer: large enough to stream.
constexpr int64_t kPieceBytes = 128 << 10;
// With no more rows a layer only waits for weights.
constexpr int64_t kReadBoundRows = 3;
// With more rows it is bound by arithmetic.
constexpr int64_t kFewRows = 16;
// Panels that share the activation rows of a block while those are in the cache, and those that kernels for
// many rows take at once.
constexpr int64_t kPanelsPerPiece = 8, kPanelsAtOnce = 2;
// With so many pieces threads end together, whatever the number of panels.
constexpr int64_t kPiecesPerThread = 8;
// Unpacking weights for many rows takes as long as multiplying them with so many rows.
constexpr int64_t kUnpackRows = 20;
// Rows are cut into parts of no fewer, at multiples of what every tile of many rows divides.
constexpr int64_t kRowsPerPart = 96, kRowUnit = 48;

const CpuWeight& cpu(const Weight& weight) { return static_cast<const CpuWeight&>(weight); }
const CpuRoutes& cpu(const Routes& routes) { return static_cast<const CpuRoutes&>(routes); }
CpuRoutes& cpu(Routes& routes) { return static_cast<CpuRoutes&>(routes); }
const CpuKvStore& cpu(const KvStore& store) { return static_cast<const CpuKvStore&>(store); }

// Rows of a batch that lie in one KV block.
struct BlockRows {
  int64_t block;
  int first_row, num_rows;
};

std::vector<BlockRows> rows_by_block(const kv::StepBatch& batch, int group) {
  std::vector<BlockRows> blocks;
  for (int s = 0; s < batch.num_sequences(); ++s) {
    const auto table = batch.table(group, s);
    const kv::SequenceRows& rows = batch.sequences[static_cast<size_t>(s)];
    for (int row = rows.first_row; row < rows.first_row + rows.num_rows; ++row) {
      const int position = batch.positions[static_cast<size_t>(row)];
      if (row == rows.first_row || position % kv::kBlockTokens == 0)
        blocks.push_back({table[static_cast<size_t>(position / kv::kBlockTokens)], row, 0});
      ++blocks.back().num_rows;
    }
  }
  return blocks;
}

}  // namespace

int64_t linear_grain(int64_t panels, int64_t panel_bytes, int64_t rows, int num_threads) {
  const int64_t fair = panels / (kPiecesPerThread * num_threads);
  if (rows > kFewRows)
    return std::clamp(fair / kPanelsAtOnce * kPanelsAtOnce, kPanelsAtOnce, kPanelsPerPiece);
  return std::max<int64_t>(1, std::min(fair, kPieceBytes / panel_bytes));
}

int64_t linear_row_parts(int64_t rows, int64_t pieces, int num_threads) {
  // In rows: what the thread with the most pieces multiplies and unpacks.
  const auto time = [&](int64_t parts) {
    const int64_t most_pieces = (pieces * parts + num_threads - 1) / num_threads;
    return most_pieces * (rows / parts + kUnpackRows);
  };
  int64_t best = 1;
  for (int64_t parts = 2; parts <= rows / kRowsPerPart; ++parts)
    if (time(parts) < time(best)) best = parts;
  return best;
}

void CpuStream::QuantizedStorage::reserve(int64_t rows, int64_t cols, int block) {
  const int64_t scales = rows * (cols / block), codes = rows * cols / 4;  // in words
  d = memory.view(1, codes + scales * (1 + sums_per_block(block))).data + codes;
  q = reinterpret_cast<int8_t*>(d - codes);
  sums = reinterpret_cast<int32_t*>(d + scales);
}

void CpuStream::for_rows(int64_t rows, int64_t work_per_row, const std::function<void(int64_t row)>& body) {
  const int64_t grain = std::max<int64_t>(1, kPieceElements / std::max<int64_t>(1, work_per_row));
  threads_.parallel_for(rows, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) body(row);
  });
}

void CpuStream::embed(const Weight& table, std::span<const int32_t> tokens, float scale, Matrix out) {
  for_rows(out.rows, out.cols * 8, [&](int64_t row) {
    float* values = out.data + row * out.cols;
    cpu(table).read_row(tokens[static_cast<size_t>(row)], values);
    if (scale != 1.0f) kernels_.scale(values, out.cols, scale);
  });
}

void CpuStream::rms_norm(Matrix x, const Weight& weight, float eps, Matrix out) {
  TERCET_CHECK(weight.inputs() == x.cols);
  for_rows(x.rows, x.cols, [&](int64_t row) {
    const float* values = x.data + row * x.cols;
    if (!kernels_.rms_norm(values, cpu(weight).values(), x.cols, eps, out.data + row * x.cols))
      non_finite_ = true;
  });
}

void CpuStream::quantize(LinearInput& in, int block) {
  QuantizedStorage& storage = quantized_[block == 32 ? 0 : 1];
  struct Tile {
    int64_t row, rows, group, index;
  };
  std::vector<Tile> tiles;
  std::vector<QuantizedRows>& groups = in.quantized(block);
  int64_t padded = 0;  // rows
  for (size_t g = 0; g + 1 < in.starts.size(); ++g) {
    const int64_t rows = in.starts[g + 1] - in.starts[g];
    const auto [tile, run] = kernels_.row_tile(std::max<int64_t>(rows, 1), block);
    groups.push_back({nullptr, nullptr, nullptr, in.x.cols, block, tile, run});
    for (int64_t i = 0; i * tile < rows; ++i, padded += tile)
      tiles.push_back(
          {in.starts[g] + i * tile, std::min<int64_t>(tile, rows - i * tile), static_cast<int64_t>(g), i});
  }
  storage.reserve(padded, in.x.cols, block);
  int64_t first = 0;
  for (size_t g = 0; g + 1 < in.starts.size(); ++g) {
    QuantizedRows& out = groups[g];
    const int64_t blocks = first * out.blocks();
    out.q = storage.q + first * out.cols;
    out.d = storage.d + blocks;
    out.sums = storage.sums + blocks * sums_per_block(block);
    first += (in.starts[g + 1] - in.starts[g] + out.tile - 1) / out.tile * out.tile;
  }
  const int64_t tile_elements = in.x.cols * 2 * (tiles.empty() ? 1 : tiles.front().rows);
  for_rows(static_cast<int64_t>(tiles.size()), tile_elements, [&](int64_t i) {
    const Tile& tile = tiles[static_cast<size_t>(i)];
    const QuantizedRows& out = groups[static_cast<size_t>(tile.group)];
    if (!kernels_.quantize_tile(in.x.data + tile.row * in.x.cols, tile.rows, tile.index, out))
      non_finite_ = true;
  });
}

Matrix CpuStream::round_bf16(Matrix x) {
  const int64_t padded = (x.cols + 31) / 32 * 32;
  const Matrix out = rounded_.view(x.rows, padded);
  for_rows(x.rows, x.cols, [&](int64_t row) {
    float* values = out.data + row * padded;
    kernels_.round_row_bf16(x.data + row * x.cols, x.cols, values);
    std::fill(values + x.cols, values + padded, 0.0f);
  });
  return out;
}

// x in the form that the weight's kernels take.
void CpuStream::prepare(LinearInput& in, const CpuWeight& weight) {
  if (weight.layout() != nullptr) {
    const int block = weight.layout()->activation_block();
    if (in.quantized(block).empty()) quantize(in, block);
  } else if (weight.float_type() == FloatType::kBF16 && in.rounded.data == nullptr) {
    in.rounded = round_bf16(in.x);
  }
}

CpuStream::LinearFactor CpuStream::factor(LinearInput& in, const Weight& weight, const Weight* bias,
                                          size_t group) const {
  const auto matrix = static_cast<int>(group);
  LinearFactor out{&cpu(weight), cpu(weight).panels(matrix)};
  if (bias != nullptr) out.bias = cpu(*bias).values() + matrix * weight.outputs();
  if (const auto* layout = out.weight->layout())
    out.quantized = &in.quantized(layout->activation_block())[group];
  return out;
}

void CpuStream::add_pieces(LinearInput& in, const LinearTerm& term) {
  const CpuWeight& weight = cpu(*term.weight);
  const auto check = [&](const Weight& matrix, const Weight* bias) {
    TERCET_CHECK(matrix.inputs() == in.x.cols && matrix.outputs() == term.out.cols);
    TERCET_CHECK(matrix.stack_size() == weight.stack_size());
    TERCET_CHECK(bias == nullptr || bias->inputs() == matrix.outputs() * matrix.stack_size());
  };
  TERCET_CHECK(term.out.rows == in.x.rows);
  check(weight, term.bias);
  prepare(in, weight);
  if (term.up != nullptr) {
    check(*term.up, term.up_bias);
    prepare(in, cpu(*term.up));
  }
  const int64_t panels = quant::num_panels(weight.outputs());
  for (size_t group = 0; group + 1 < in.starts.size(); ++group) {
    LinearPiece piece{};
    piece.activation = term.activation;
    piece.first_row = in.starts[group];
    piece.rows = in.starts[group + 1] - piece.first_row;
    piece.out = term.out;
    if (piece.rows == 0) continue;
    piece.weight = factor(in, weight, term.bias, group);
    if (term.up != nullptr) piece.up = factor(in, *term.up, term.up_bias, group);
    const int64_t grain = linear_grain(panels, weight.panel_stride(), piece.rows, threads_.num_threads());
    for (int64_t panel = 0; panel < panels; panel += grain) {
      piece.panel_begin = panel;
      piece.panel_end = std::min(panel + grain, panels);
      pieces_.push_back(piece);
    }
  }
}

// Outputs of the piece's panels; the first of them is at y.
void CpuStream::multiply(const LinearInput& in, const LinearFactor& factor, const LinearPiece& piece,
                         float* y, int64_t y_stride) const {
  const CpuWeight& weight = *factor.weight;
  const int64_t first = piece.panel_begin * quant::kPanelRows;
  LinearTask task;
  task.panels = factor.panels + piece.panel_begin * weight.panel_stride();
  task.panel_stride = weight.panel_stride();
  task.inputs = weight.inputs();
  task.outputs = weight.outputs() - first;
  task.panel_end = piece.panel_end - piece.panel_begin;
  task.rows = piece.rows;
  task.prefetch = in.prefetch;
  task.bias = factor.bias == nullptr ? nullptr : factor.bias + first;
  task.y = y;
  task.y_stride = y_stride;
  if (factor.quantized != nullptr) {
    const QuantizedRows& x = *factor.quantized;
    TERCET_CHECK(piece.skipped_rows % x.tile == 0);
    kernels_.linear_packed(*weight.layout(), task, x.from_tile(piece.skipped_rows / x.tile));
  } else {
    const Matrix x = weight.float_type() == FloatType::kBF16 ? in.rounded : in.x;
    kernels_.linear_float(weight.float_type(), task, x.data + piece.first_row * x.cols, x.cols);
  }
}

void CpuStream::run(const LinearInput& in, const LinearPiece& piece, CpuBuffer& products) const {
  const int64_t first = piece.panel_begin * quant::kPanelRows, stride = piece.out.cols;
  float* y = piece.out.data + piece.first_row * stride + first;
  if (piece.up.weight == nullptr) return multiply(in, piece.weight, piece, y, stride);
  const int64_t width = (piece.panel_end - piece.panel_begin) * quant::kPanelRows;
  float* gate = products.view(2 * piece.rows, width).data;
  float* up = gate + piece.rows * width;
  multiply(in, piece.weight, piece, gate, width);
  multiply(in, piece.up, piece, up, width);
  for (int64_t row = 0; row < piece.rows; ++row)
    kernels_.gate(piece.activation, gate + row * width, up + row * width, std::min(width, stride - first),
                  y + row * stride);
}

// Where threads would wait for others, cuts pieces, the largest of so many rows, into parts of their rows.
void CpuStream::cut_rows(int64_t most_rows) {
  const auto num_pieces = static_cast<int64_t>(pieces_.size());
  const int64_t parts = linear_row_parts(most_rows, num_pieces, threads_.num_threads());
  if (parts == 1) return;
  for (const LinearPiece& piece : std::exchange(pieces_, {})) {
    const int64_t piece_parts = std::clamp<int64_t>(piece.rows / kRowsPerPart, 1, parts);
    const int64_t units = (piece.rows + kRowUnit - 1) / kRowUnit;
    for (int64_t i = 0; i < piece_parts; ++i) {
      LinearPiece part = piece;
      part.skipped_rows = units * i / piece_parts * kRowUnit;
      part.first_row += part.skipped_rows;
      part.rows = std::min(units * (i + 1) / piece_parts * kRowUnit, piece.rows) - part.skipped_rows;
      pieces_.push_back(part);
    }
  }
}

void CpuStream::run_pieces(const LinearInput& in) {
  threads_.parallel_for(static_cast<int64_t>(pieces_.size()), 1, [&](int64_t begin, int64_t end, int member) {
    for (int64_t i = begin; i < end; ++i)
      run(in, pieces_[static_cast<size_t>(i)], products_[static_cast<size_t>(member)]);
  });
}

void CpuStream::linear(LinearInput& in, std::span<const LinearTerm> terms) {
  pieces_.clear();
  for (const LinearTerm& term : terms) add_pieces(in, term);
  int64_t bytes = 0, rows = 0;
  for (const LinearPiece& piece : pieces_) {
    const int matrices = piece.up.weight == nullptr ? 1 : 2;
    bytes += (piece.panel_end - piece.panel_begin) * piece.weight.weight->panel_stride() * matrices;
    rows = std::max(rows, piece.rows);
  }
  if (rows > kFewRows) {
    cut_rows(rows);
    return run_pieces(in);
  }
  PrefetchTrial& trial = prefetch_trials_[rows <= kReadBoundRows ? 0 : 1];
  in.prefetch = trial.choice(bytes);
  const auto start = std::chrono::steady_clock::now();
  run_pieces(in);
  trial.took(bytes, std::chrono::steady_clock::now() - start);
}

void CpuStream::linear(Matrix x, std::span<const LinearTerm> terms) {
  const int32_t starts[] = {0, static_cast<int32_t>(x.rows)};
  LinearInput in{x, starts, {}, {}};
  linear(in, terms);
}

void CpuStream::linear_by_route(Matrix x, const Routes& routes, std::span<const LinearTerm> terms) {
  const std::vector<int32_t>& starts = cpu(routes).starts;
  TERCET_CHECK(starts.back() == x.rows);
  for (const LinearTerm& term : terms)
    TERCET_CHECK(cpu(*term.weight).stack_size() == static_cast<int>(starts.size()) - 1);
  LinearInput in{x, starts, {}, {}};
  linear(in, terms);
}

void CpuStream::rope(Matrix x, int head_dim, Matrix angles) {
  const int64_t heads = x.cols / head_dim, half = angles.cols / 2;
  for_rows(x.rows, x.cols, [&](int64_t row) {
    const float* cos = angles.data + row * angles.cols;
    for (int64_t head = 0; head < heads; ++head)
      kernels_.rope(x.data + row * x.cols + head * head_dim, cos, cos + half, static_cast<int>(half));
  });
}

void CpuStream::add(Matrix x, Matrix y) {
  for_rows(x.rows, x.cols, [&](int64_t row) {
    if (!kernels_.add(x.data + row * x.cols, y.data + row * y.cols, x.cols)) non_finite_ = true;
  });
}

void CpuStream::scale(Matrix x, float factor) {
  for_rows(x.rows, x.cols, [&](int64_t row) { kernels_.scale(x.data + row * x.cols, x.cols, factor); });
}

void CpuStream::soft_cap(Matrix x, float cap) {
  for_rows(x.rows, x.cols * 4, [&](int64_t row) { kernels_.soft_cap(x.data + row * x.cols, x.cols, cap); });
}

void CpuStream::gather(Matrix x, std::span<const int32_t> rows, Matrix out) {
  for (size_t i = 0; i < rows.size(); ++i)
    std::memcpy(out.data + static_cast<int64_t>(i) * x.cols, x.data + rows[i] * x.cols,
                static_cast<size_t>(x.cols) * sizeof(float));
}

void CpuStream::concat(Matrix a, Matrix b, Matrix out) {
  TERCET_CHECK(a.rows == out.rows && b.rows == out.rows && a.cols + b.cols == out.cols);
  for_rows(out.rows, out.cols, [&](int64_t row) {
    float* values = out.data + row * out.cols;
    std::memcpy(values, a.data + row * a.cols, static_cast<size_t>(a.cols) * sizeof(float));
    std::memcpy(values + a.cols, b.data + row * b.cols, static_cast<size_t>(b.cols) * sizeof(float));
  });
}

void CpuStream::route(Matrix logits, const RouterSpec& spec, const Weight* correction, Routes& routes) {
  TERCET_CHECK(logits.cols == spec.num_experts);
  TERCET_CHECK(correction == nullptr || correction->inputs() == spec.num_experts);
  CpuRoutes& out = cpu(routes);
  const auto used = static_cast<size_t>(spec.num_used);
  std::vector<int32_t> experts(static_cast<size_t>(logits.rows) * used);
  out.weights.resize(experts.size());
  for_rows(logits.rows, logits.cols * 16, [&](int64_t row) {
    const size_t at = static_cast<size_t>(row) * used;
    if (!choose_experts(logits.data + row * logits.cols,
                        correction == nullptr ? nullptr : cpu(*correction).values(), spec, &experts[at],
                        &out.weights[at]))
      non_finite_ = true;
  });
  group_by_matrix(experts, spec.num_experts, spec.num_used, out);
}

void CpuStream::route_heads(int64_t num_rows, int num_heads, Routes& routes) {
  std::vector<int32_t> heads(static_cast<size_t>(num_rows));
  for (size_t row = 0; row < heads.size(); ++row)
    heads[row] = static_cast<int32_t>(row % static_cast<size_t>(num_heads));
  cpu(routes).weights.assign(heads.size(), 1.0f);
  group_by_matrix(heads, num_heads, 1, cpu(routes));
}

void CpuStream::scatter_to_routes(Matrix x, const Routes& routes, Matrix out) {
  const std::vector<int32_t>& row_of = cpu(routes).row_of;
  TERCET_CHECK(out.rows == static_cast<int64_t>(row_of.size()) && out.cols == x.cols);
  for_rows(out.rows, out.cols, [&](int64_t copy) {
    std::memcpy(out.data + copy * out.cols, x.data + row_of[static_cast<size_t>(copy)] * x.cols,
                static_cast<size_t>(x.cols) * sizeof(float));
  });
}

void CpuStream::gather_from_routes(Matrix x, const Routes& routes, Matrix out) {
  const CpuRoutes& from = cpu(routes);
  TERCET_CHECK(out.rows * from.used == x.rows && out.cols == x.cols);
  for_rows(out.rows, out.cols * from.used, [&](int64_t row) {
    float* total = out.data + row * out.cols;
    std::fill_n(total, out.cols, 0.0f);
    for (int i = 0; i < from.used; ++i) {
      const auto at = static_cast<size_t>(row * from.used + i);
      kernels_.add_scaled(total, x.data + from.copies[at] * x.cols, out.cols, from.weights[at]);
    }
  });
}

void CpuStream::prepare_kv(KvStore& kv, const kv::StepBatch& batch) {
  const auto& layers = kv.spec().layers;
  threads_.parallel_for(static_cast<int64_t>(layers.size()), 1, [&](int64_t begin, int64_t end, int) {
    for (auto layer = static_cast<int>(begin); layer < end; ++layer) {
      const auto group = static_cast<size_t>(layers[static_cast<size_t>(layer)].group);
      for (const KvRegion& region : {kv.k_region(layer), kv.v_region(layer)})
        for (const kv::BlockId block : batch.groups[group].blocks_to_zero)
          std::memset(region.base + block * region.stride, 0, static_cast<size_t>(region.bytes));
    }
  });
}

void CpuStream::store_kv(KvStore& kv, int layer, Matrix k, Matrix v, const kv::StepBatch& batch) {
  const CpuKvStore& store = cpu(kv);
  const KvLayerSpec& spec = store.spec().layers[static_cast<size_t>(layer)];
  TERCET_CHECK(k.cols == int64_t{spec.num_kv_heads} * spec.k_dim);
  TERCET_CHECK(v.cols == int64_t{spec.num_kv_heads} * spec.v_dim);
  const int64_t k_stride = store.k_region(layer).stride, v_stride = store.v_region(layer).stride;
  const std::vector<BlockRows> blocks = rows_by_block(batch, spec.group);
  // A piece is a head's part of a block, whose rows share cache lines.
  const auto num_blocks = static_cast<int64_t>(blocks.size());
  const int64_t pieces = num_blocks * spec.num_kv_heads;
  const int64_t work = k.rows * (k.cols + v.cols) * 4;
  for_rows(pieces, work / std::max<int64_t>(1, pieces), [&](int64_t i) {
    const BlockRows& rows = blocks[static_cast<size_t>(i % num_blocks)];
    const auto head = static_cast<int>(i / num_blocks);
    std::byte* const k_block = store.k_head(layer, head) + rows.block * k_stride;
    std::byte* const v_block = store.v_head(layer, head) + rows.block * v_stride;
    for (int row = rows.first_row; row < rows.first_row + rows.num_rows; ++row) {
      const int slot = batch.positions[static_cast<size_t>(row)] % kv::kBlockTokens;
      kernels_.store_k(store.spec().type, k.data + row * k.cols + head * spec.k_dim, spec.k_dim, slot,
                       k_block);
      kernels_.store_v(store.spec().type, v.data + row * v.cols + head * spec.v_dim, spec.v_dim, slot,
                       v_block);
    }
  });
}

void CpuStream::attention(KvStore& kv, int layer, Matrix q, const kv::StepBatch& batch,
                          const AttentionSpec& spec, Matrix out) {
  run_attention(kernels_, threads_, cpu(kv), layer, q, batch, spec, out, attention_scratch_);
}

void CpuStream::upload(std::span<const float> values, Matrix to) {
  TERCET_CHECK(static_cast<int64_t>(values.size()) == to.rows * to.cols);
  std::copy_n(values.data(), values.size(), to.data);
}

void CpuStream::download(Matrix from, std::span<float> values) {
  TERCET_CHECK(static_cast<int64_t>(values.size()) == from.rows * from.cols);
  std::copy_n(from.data, values.size(), values.data());  // no row may be wanted: then there is no memory
}

}  // namespace tercet::backend
