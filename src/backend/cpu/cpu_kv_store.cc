#include "backend/cpu/cpu_kv_store.h"

#include "backend/cpu/kernels.h"

namespace tercet::backend {
namespace {

constexpr int64_t kVectorBytes = 64;

}  // namespace

int64_t kv_block_bytes(const KvLayerSpec& layer, KvType type) {
  return int64_t{2} * layer.num_kv_heads * layer.head_dim * kv::kBlockTokens * kv_type_bytes(type);
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
    const int64_t half =
        kv_block_bytes(layer, spec.type) / 2 * spec.group_blocks[static_cast<size_t>(layer.group)] +
        kVectorBytes;
    TERCET_ASSIGN(AlignedBuffer k, AlignedBuffer::allocate(half));
    TERCET_ASSIGN(AlignedBuffer v, AlignedBuffer::allocate(half));
    store->k_.push_back(std::move(k));
    store->v_.push_back(std::move(v));
  }
  return std::unique_ptr<KvStore>(std::move(store));
}

int64_t CpuKvStore::head_bytes(int layer) const {
  return int64_t{spec_.layers[static_cast<size_t>(layer)].head_dim} * kv::kBlockTokens *
         kv_type_bytes(spec_.type);
}

KvRegion CpuKvStore::k_region(int layer) const {
  const int64_t bytes = kv_block_bytes(spec_.layers[static_cast<size_t>(layer)], spec_.type) / 2;
  return {const_cast<std::byte*>(k_[static_cast<size_t>(layer)].data()), bytes, bytes};
}

KvRegion CpuKvStore::v_region(int layer) const {
  const int64_t bytes = kv_block_bytes(spec_.layers[static_cast<size_t>(layer)], spec_.type) / 2;
  return {const_cast<std::byte*>(v_[static_cast<size_t>(layer)].data()), bytes, bytes};
}

}  // namespace tercet::backend
