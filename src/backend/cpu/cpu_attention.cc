#include "backend/cpu/cpu_attention.h"

#include <algorithm>
#include <numeric>

#include "backend/cpu/cpu_weight.h"
#include "base/check.h"

namespace tercet::backend {
namespace {

struct Tile {
  AttentionTile task;
  float* out[AttentionTile::kMaxRows];
  float sink[AttentionTile::kMaxRows];
  int first_segment = 0;
  int last_segment = 0;
  int64_t first_partial = 0;  // index of the first segment's partial when segments are computed apart

  int num_segments() const { return last_segment - first_segment + 1; }
};

struct Inputs {
  const CpuKvStore& store;
  int layer;
  Matrix q;
  const kv::StepBatch& batch;
  const AttentionSpec& spec;
  const float* sinks;  // [num_heads] or none
  Matrix out;
  const AttentionScratch& scratch;
};

void add_row(Tile& tile, const Inputs& in, int row, int head) {
  const int position = in.batch.positions[static_cast<size_t>(row)];
  const int window = in.spec.window;
  const int index = tile.task.num_rows++;
  tile.task.q[index] = in.q.data + row * in.q.cols + head * tile.task.k_dim;
  if (tile.task.type == KvType::kInt8) {
    const auto query = static_cast<size_t>(int64_t{row} * in.spec.num_heads + head);
    tile.task.q8[index] = in.scratch.q8.data() + query * static_cast<size_t>((tile.task.k_dim + 3) / 4 * 4);
    tile.task.q8_scale[index] = in.scratch.q8_scales[query];
    tile.task.q8_sum[index] = in.scratch.q8_sums[query];
  }
  tile.out[index] = in.out.data + row * in.out.cols + head * tile.task.v_dim;
  tile.sink[index] = in.sinks == nullptr ? 0 : in.sinks[head];
  tile.task.first[index] = window == 0 ? 0 : std::max(0, position - window + 1);
  tile.task.last[index] = position;
}

// The tiles of one sequence and KV head: as many whole tokens as fit, the heads of a token together.
void add_tiles(std::vector<Tile>& tiles, const Inputs& in, int sequence, int kv_head) {
  const KvLayerSpec& layer = in.store.spec().layers[static_cast<size_t>(in.layer)];
  const kv::SequenceRows& rows = in.batch.sequences[static_cast<size_t>(sequence)];
  const int group = in.spec.num_heads / layer.num_kv_heads;
  Tile fresh;
  fresh.task.table = in.batch.table(layer.group, sequence).data();
  fresh.task.k = in.store.k_head(in.layer, kv_head);
  fresh.task.v = in.store.v_head(in.layer, kv_head);
  fresh.task.k_stride = in.store.k_region(in.layer).stride;
  fresh.task.v_stride = in.store.v_region(in.layer).stride;
  fresh.task.k_dim = layer.k_dim;
  fresh.task.v_dim = layer.v_dim;
  fresh.task.type = in.store.spec().type;
  fresh.task.scale = in.spec.scale;
  fresh.task.soft_cap = in.spec.soft_cap;
  Tile tile = fresh;
  const auto close = [&] {
    if (tile.task.num_rows == 0) return;
    const int first = *std::min_element(tile.task.first, tile.task.first + tile.task.num_rows);
    const int last = *std::max_element(tile.task.last, tile.task.last + tile.task.num_rows);
    tile.first_segment = first / kAttentionSegment;
    tile.last_segment = last / kAttentionSegment;
    tiles.push_back(tile);
    tile = fresh;
  };
  for (int row = rows.first_row; row < rows.first_row + rows.num_rows; ++row) {
    if (tile.task.num_rows + std::min(group, AttentionTile::kMaxRows) > AttentionTile::kMaxRows) close();
    for (int head = 0; head < group; ++head) {
      if (tile.task.num_rows == AttentionTile::kMaxRows) close();
      add_row(tile, in, row, kv_head * group + head);
    }
  }
  close();
}

void clear(AttentionPartial& partial, float* o) {
  std::fill(std::begin(partial.sum), std::end(partial.sum), 0.0f);
  partial.o = o;
}

// Merges the sinks, last: each a segment whose one key has the sink's score and a value of zero. Then out =
// o / sum. `zeros` is scratch for [num_rows, v_dim].
void finish(const Kernels& kernels, const Tile& tile, bool has_sinks, float* zeros, AttentionPartial& total) {
  const int rows = tile.task.num_rows, v_dim = tile.task.v_dim;
  if (has_sinks) {
    AttentionPartial sink;
    std::fill_n(zeros, rows * v_dim, 0.0f);
    sink.o = zeros;
    for (int row = 0; row < rows; ++row) {
      sink.max[row] = tile.sink[row];
      sink.sum[row] = 1;
    }
    kernels.attention_merge(rows, v_dim, sink, total);
  }
  kernels.attention_finish(rows, v_dim, total, tile.out);
}

void walk_tile(const Kernels& kernels, const Tile& tile, bool has_sinks, float* scratch) {
  const int v_dim = tile.task.v_dim;
  AttentionPartial total, part;
  clear(total, scratch);
  clear(part, scratch + AttentionTile::kMaxRows * v_dim);
  for (int segment = tile.first_segment; segment <= tile.last_segment; ++segment) {
    kernels.attention_segment(tile.task, segment, part);
    kernels.attention_merge(tile.task.num_rows, v_dim, part, total);
  }
  finish(kernels, tile, has_sinks, part.o, total);
}

// With an int8 K the queries are int8 too, each head of a row with its scale.
void quantize_queries(const Kernels& kernels, ThreadPool& threads, Matrix q, int num_heads, int dim,
                      AttentionScratch& scratch) {
  const int padded = (dim + 3) / 4 * 4;
  const auto queries = static_cast<size_t>(q.rows * num_heads);
  scratch.q8.assign(queries * static_cast<size_t>(padded), 0);
  scratch.q8_scales.resize(queries);
  scratch.q8_sums.resize(queries);
  threads.parallel_for(q.rows * num_heads, 64, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const auto query = static_cast<size_t>(i);
      int8_t* codes = scratch.q8.data() + i * padded;
      scratch.q8_scales[query] = kernels.quantize_head(q.data + i * dim, dim, codes);
      scratch.q8_sums[query] = std::accumulate(codes, codes + dim, 0);
    }
  });
}

int most_rows(const std::vector<Tile>& tiles) {
  int rows = 0;
  for (const Tile& tile : tiles) rows = std::max(rows, tile.task.num_rows);
  return rows;
}

// Few tiles and long contexts: the segments of all tiles are computed by any thread, then merged tile by
// tile.
void run_split(const Kernels& kernels, ThreadPool& threads, const std::vector<Tile>& tiles, bool has_sinks,
               AttentionScratch& scratch) {
  struct Piece {
    const Tile* tile;
    int segment;
  };
  std::vector<Piece> pieces;
  for (const Tile& tile : tiles)
    for (int segment = tile.first_segment; segment <= tile.last_segment; ++segment)
      pieces.push_back({&tile, segment});
  const int64_t values = int64_t{most_rows(tiles)} * tiles.front().task.v_dim;
  // Behind the partials, zeros for the sinks of each thread.
  const int64_t num_pieces = static_cast<int64_t>(pieces.size());
  scratch.values.resize(static_cast<size_t>((num_pieces + threads.num_threads()) * values));
  std::vector<AttentionPartial> partials(pieces.size());
  threads.parallel_for(num_pieces, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const Piece& piece = pieces[static_cast<size_t>(i)];
      clear(partials[static_cast<size_t>(i)], scratch.values.data() + i * values);
      kernels.attention_segment(piece.tile->task, piece.segment, partials[static_cast<size_t>(i)]);
    }
  });
  threads.parallel_for(static_cast<int64_t>(tiles.size()), 1, [&](int64_t begin, int64_t end, int member) {
    for (int64_t i = begin; i < end; ++i) {
      const Tile& tile = tiles[static_cast<size_t>(i)];
      const auto first = static_cast<size_t>(tile.first_partial);
      AttentionPartial total = partials[first];
      for (int s = 1; s < tile.num_segments(); ++s)
        kernels.attention_merge(tile.task.num_rows, tile.task.v_dim, partials[first + static_cast<size_t>(s)],
                                total);
      finish(kernels, tile, has_sinks, scratch.values.data() + (num_pieces + member) * values, total);
    }
  });
}

}  // namespace

void run_attention(const Kernels& kernels, ThreadPool& threads, const CpuKvStore& store, int layer, Matrix q,
                   const kv::StepBatch& batch, const AttentionSpec& spec, Matrix out,
                   AttentionScratch& scratch) {
  const KvLayerSpec& kv_layer = store.spec().layers[static_cast<size_t>(layer)];
  TERCET_CHECK(spec.num_heads % kv_layer.num_kv_heads == 0);
  TERCET_CHECK(q.cols == int64_t{spec.num_heads} * kv_layer.k_dim);
  TERCET_CHECK(out.cols == int64_t{spec.num_heads} * kv_layer.v_dim);
  const float* sinks = spec.sinks == nullptr ? nullptr : static_cast<const CpuWeight*>(spec.sinks)->values();
  std::vector<Tile> tiles;
  if (store.spec().type == KvType::kInt8)
    quantize_queries(kernels, threads, q, spec.num_heads, kv_layer.k_dim, scratch);
  const Inputs in{store, layer, q, batch, spec, sinks, out, scratch};
  for (int sequence = 0; sequence < batch.num_sequences(); ++sequence)
    for (int head = 0; head < kv_layer.num_kv_heads; ++head) add_tiles(tiles, in, sequence, head);
  int64_t num_segments = 0;
  for (Tile& tile : tiles) {
    tile.first_partial = num_segments;
    num_segments += tile.num_segments();
  }
  const auto num_tiles = static_cast<int64_t>(tiles.size());
  if (num_tiles < threads.num_threads() * 4 && num_segments > num_tiles) {
    run_split(kernels, threads, tiles, sinks != nullptr, scratch);
    return;
  }
  const int64_t per_thread = int64_t{2} * AttentionTile::kMaxRows * kv_layer.v_dim;
  scratch.values.resize(static_cast<size_t>(threads.num_threads() * per_thread));
  threads.parallel_for(num_tiles, 1, [&](int64_t begin, int64_t end, int member) {
    for (int64_t i = begin; i < end; ++i)
      walk_tile(kernels, tiles[static_cast<size_t>(i)], sinks != nullptr,
                scratch.values.data() + member * per_thread);
  });
}

}  // namespace tercet::backend
