// Llm: a model, loaded and ready: package, device, weights, engine. What a command or a server builds its
// front end on.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "backend/cpu/cpu_device.h"
#include "engine/engine.h"
#include "model/package.h"

namespace tercet::engine {

struct LlmOptions {
  int num_threads = 0;       // 0: one for each usable CPU
  bool pin_threads = false;  // ThreadPool's `pins`
  int context_length = 0;    // 0: the model's, or what half of the free memory holds
  // That run at once. The KV pool holds all of them at full context, or as much as half of the free memory.
  int num_sequences = 1;
  int num_kv_tokens = 0;  // 0: as above; else what the KV pool holds
  int max_queue = 1024;   // requests that wait
  sched::Policy policy = sched::Policy::kFcfs;
  backend::KvType kv_type = backend::KvType::kF16;
  int prefill_chunk = 512;  // tokens of prompts in one step
  backend::CpuDeviceOptions device;
  model::PackageOptions package;
};

struct LoadStats {
  double seconds = 0;
  int64_t weight_bytes = 0;  // as packed
  int64_t kv_bytes = 0;
  // Why the context is as long as it is, where that was this program's choice; else empty.
  std::string context_note;
};

class Llm {
 public:
  // `progress(done, total)` counts layers while weights load.
  static Result<std::unique_ptr<Llm>> load(const std::string& path, const LlmOptions& options,
                                           const model::LoadProgress& progress = {});

  const model::Package& package() const { return *package_; }
  const model::Decoder& decoder() const { return *decoder_; }
  backend::Device& device() { return *device_; }
  ThreadPool& threads() { return *threads_; }
  Engine& engine() { return *engine_; }
  const Engine& engine() const { return *engine_; }
  const LoadStats& load_stats() const { return stats_; }
  backend::KvType kv_type() const { return kv_type_; }

 private:
  Llm() = default;
  std::unique_ptr<model::Package> package_;
  std::unique_ptr<ThreadPool> threads_;
  std::unique_ptr<backend::Device> device_;
  std::unique_ptr<model::Decoder> decoder_;
  std::unique_ptr<Engine> engine_;
  LoadStats stats_;
  backend::KvType kv_type_ = backend::KvType::kF16;
};

}  // namespace tercet::engine
