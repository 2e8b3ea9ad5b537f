#include "backend/cpu/cpu_kv_store.h"

#include "backend/cpu/kernels.h"

namespace tercet::backend {
namespace {

constexpr int64_t kVectorBytes = 64;

}  // namespace

int64_t k_block_bytes(const KvLayerSpec& layer, KvType type) {
  return layer.num_kv_heads * k_head_bytes(type, layer.k_dim);
}

int64_t v_block_bytes(const KvLayerSpec& layer, KvType type) {
  return layer.num_kv_heads * v_head_bytes(type, layer.v_dim);
}

int64_t kv_block_bytes(const KvLayerSpec& layer, KvType type) {
  return k_block_bytes(layer, type) + v_block_bytes(layer, type);
}

int64_t KvStore::bytes() const {
  int64_t total = 0;
  for (const KvLayerSpec& layer : spec().layers)
    total += kv_block_bytes(layer, spec().type) * spec().group_blocks[static_cast<size_t>(layer.group)];
  return total;
}

Result<std::unique_ptr<KvStore>> CpuKvStore::create(const KvStoreSpec& spec) {
  auto store = std::unique_ptr<CpuKvStore>(new CpuKvStore(spec));
  for (const KvLayerSpec& layer : spec.layers) {
    // Kernels may load up to a vector's worth behind the last head.
    const int64_t blocks = spec.group_blocks[static_cast<size_t>(layer.group)];
    TERCET_ASSIGN(AlignedBuffer k,
                  AlignedBuffer::allocate(k_block_bytes(layer, spec.type) * blocks + kVectorBytes));
    TERCET_ASSIGN(AlignedBuffer v,
                  AlignedBuffer::allocate(v_block_bytes(layer, spec.type) * blocks + kVectorBytes));
    store->k_.push_back(std::move(k));
    store->v_.push_back(std::move(v));
  }
  return std::unique_ptr<KvStore>(std::move(store));
}

KvRegion CpuKvStore::k_region(int layer) const {
  const int64_t bytes = k_block_bytes(spec_.layers[static_cast<size_t>(layer)], spec_.type);
  return {const_cast<std::byte*>(k_[static_cast<size_t>(layer)].data()), bytes, bytes};
}

KvRegion CpuKvStore::v_region(int layer) const {
  const int64_t bytes = v_block_bytes(spec_.layers[static_cast<size_t>(layer)], spec_.type);
  return {const_cast<std::byte*>(v_[static_cast<size_t>(layer)].data()), bytes, bytes};
}

std::byte* CpuKvStore::k_head(int layer, int head) const {
  const KvRegion region = k_region(layer);
  return region.base + region.bytes / spec_.layers[static_cast<size_t>(layer)].num_kv_heads * head;
}

std::byte* CpuKvStore::v_head(int layer, int head) const {
  const KvRegion region = v_region(layer);
  return region.base + region.bytes / spec_.layers[static_cast<size_t>(layer)].num_kv_heads * head;
}

}  // namespace tercet::backend
