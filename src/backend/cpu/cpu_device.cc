#include "backend/cpu/cpu_device.h"

#include <fmt/format.h>

#include "backend/cpu/cpu_buffer.h"
#include "backend/cpu/cpu_kv_store.h"
#include "backend/cpu/cpu_router.h"
#include "backend/cpu/cpu_stream.h"
#include "backend/cpu/cpu_weight.h"
#include "tensor/arena.h"

namespace tercet::backend {
namespace {

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const CpuDeviceOptions& options) : options_(options) {}

  std::string description() const override {
    return fmt::format("CPU, {}{}", isa_name(options_.isa),
                       options_.widen_weights ? ", weights widened to F32" : "");
  }
  Result<int64_t> packed_bytes(DType type, int64_t outputs, int64_t inputs) const override {
    return CpuWeight::packed_bytes(type, outputs, inputs, options_.widen_weights);
  }
  Result<std::unique_ptr<Weight>> pack(const WeightSource& source, ThreadPool& threads) override {
    return CpuWeight::pack(source, options_.widen_weights, threads, arena_);
  }
  Result<std::unique_ptr<Weight>> pack_stack(int stack_size, const StackSource& source,
                                             ThreadPool& threads) override {
    return CpuWeight::pack_stack(stack_size, source, options_.widen_weights, threads, arena_);
  }
  Result<std::unique_ptr<Weight>> vector(const WeightSource& source) override {
    return CpuWeight::vector(source, arena_);
  }
  std::unique_ptr<Buffer> buffer() override { return std::make_unique<CpuBuffer>(); }
  std::unique_ptr<Routes> routes() override { return std::make_unique<CpuRoutes>(); }
  Result<std::unique_ptr<KvStore>> kv_store(const KvStoreSpec& spec) override {
    return CpuKvStore::create(spec);
  }
  std::unique_ptr<Stream> stream(ThreadPool& threads) override {
    return std::make_unique<CpuStream>(kernels(options_.isa), threads);
  }

 private:
  CpuDeviceOptions options_;
  Arena arena_;  // of weights
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(const CpuDeviceOptions& options) {
  return std::make_unique<CpuDevice>(options);
}

}  // namespace tercet::backend
