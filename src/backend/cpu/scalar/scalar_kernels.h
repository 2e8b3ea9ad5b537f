// The scalar kernels: the reference semantics of the arithmetic, in plain code. See kernels.h for what each
// one does.
#pragma once

#include "backend/cpu/kernels.h"

namespace tercet::backend::scalar {

// Blocks of activations with no larger magnitude quantize to zero: 127 / amax would overflow near the
// subnormals.
inline constexpr float kQuantizeTiny = 1e-30f;

int64_t multiply_adds(int64_t rounds);
RowTile row_tile(int64_t rows, int block);
bool quantize_tile(const float* x, int64_t rows, int64_t index, const QuantizedRows& out);
void linear_packed(const quant::PackedLayout& layout, const LinearTask& task, const QuantizedRows& x);
void linear_float(FloatType type, const LinearTask& task, const float* x, int64_t x_stride);
void round_row_bf16(const float* x, int64_t n, float* out);

bool rms_norm(const float* x, const float* weight, int64_t n, float eps, float* out);
bool add(float* x, const float* y, int64_t n);
void add_scaled(float* x, const float* y, int64_t n, float factor);
void scale(float* x, int64_t n, float factor);
void gate(Activation activation, const float* gate, const float* up, int64_t n, float* out);
void soft_cap(float* x, int64_t n, float cap);
void rope(float* x, const float* cos, const float* sin, int half);

float quantize_head(const float* x, int dim, int8_t* q);
void store_k(KvType type, const float* k, int dim, int slot, std::byte* block);
void store_v(KvType type, const float* v, int dim, int slot, std::byte* block);
void attention_segment(const AttentionTile& tile, int segment, AttentionPartial& out);
void attention_merge(int num_rows, int v_dim, const AttentionPartial& from, AttentionPartial& into);
void attention_finish(int num_rows, int v_dim, const AttentionPartial& partial, float* const* out);

}  // namespace tercet::backend::scalar
