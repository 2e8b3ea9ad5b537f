// The CPU's KV store. In every layer block b holds, for each KV head, its K and its V as kernels.h lays them
// out.
#pragma once

#include <vector>

#include "backend/device.h"
#include "tensor/aligned_buffer.h"

namespace tercet::backend {

class CpuKvStore final : public KvStore {
 public:
  static Result<std::unique_ptr<KvStore>> create(const KvStoreSpec& spec);

  const KvStoreSpec& spec() const override { return spec_; }
  KvRegion k_region(int layer) const override;
  KvRegion v_region(int layer) const override;

  // One head's K (or V) in block 0.
  std::byte* k_head(int layer, int head) const;
  std::byte* v_head(int layer, int head) const;

 private:
  explicit CpuKvStore(KvStoreSpec spec) : spec_(std::move(spec)) {}
  KvStoreSpec spec_;
  std::vector<AlignedBuffer> k_, v_;  // [layers]
};

}  // namespace tercet::backend
