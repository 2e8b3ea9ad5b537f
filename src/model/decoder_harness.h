// For tests: a decoder on the CPU device without an engine, and sequences whose rows a test places where it
// likes.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/cpu_device.h"
#include "model/decoder.h"
#include "model/model_files.h"

namespace tercet::model {

// The path of a model that `tercet pull` fetched into the folder that TERCET_MODELS names; "" when it is not
// there.
inline std::string test_model(const std::string& name) {
  const char* folder = std::getenv("TERCET_MODELS");
  if (folder == nullptr) return "";
  const std::string path = std::string(folder) + "/" + name + ".gguf";
  return std::filesystem::exists(path) ? path : "";
}

// Rows of one sequence in a step: its tokens from `position` on, whose block tables begin at block
// `first_block`.
struct TestRows {
  std::vector<int32_t> tokens;
  int position = 0;
  int first_block = 0;
  bool fresh = true;  // its blocks are zeroed before the step
  int rope_variant = 0;
};

class DecoderHarness {
 public:
  struct Options {
    backend::CpuDeviceOptions device;
    backend::KvType kv_type = backend::KvType::kF16;
    int num_threads = 2;
    int num_blocks = 256;
  };

  DecoderHarness(const std::string& path, const Options& options)
      : DecoderHarness(value(open_model_files(path)), options) {}

  DecoderHarness(ModelFiles files, const Options& options)
      : files_(std::move(files)),
        spec_(value(model_spec(files_.source()))),
        device_(backend::make_cpu_device(options.device)),
        threads_(std::make_unique<ThreadPool>(options.num_threads)),
        decoder_(spec_, value(load_weights(spec_, files_.tensors, *device_, *threads_))),
        kv_type_(options.kv_type),
        num_blocks_(options.num_blocks) {
    files_.tensors.release_all();
    restart(options.num_threads);
  }

  // A fresh KV store and a pool of `num_threads`; the weights stay.
  void restart(int num_threads) {
    context_.reset();
    threads_ = std::make_unique<ThreadPool>(num_threads);
    const std::vector<int> group_blocks(spec_.kv_groups.size(), num_blocks_);
    kv_ = value(device_->kv_store(decoder_.kv_store_spec(group_blocks, kv_type_)));
    context_ = std::make_unique<DecoderContext>(*device_, *threads_);
  }

  // Runs one step and returns the logits of all its rows, [rows, vocab].
  std::vector<float> run(const std::vector<TestRows>& sequences) {
    const kv::StepBatch batch = make_batch(sequences);
    const backend::Matrix logits = value(decoder_.forward(*context_, *kv_, batch));
    std::vector<float> out(static_cast<size_t>(logits.rows * logits.cols));
    context_->stream->download(logits, out);
    return out;
  }

  const DecoderSpec& spec() const { return spec_; }
  size_t vocab() const { return static_cast<size_t>(spec_.vocab_size); }
  backend::KvStore& kv() { return *kv_; }

 private:
  template <class T>
  static T value(Result<T> result) {
    if (!result.ok()) check_failed("the harness's model", __FILE__, __LINE__, result.error().to_string());
    return *std::move(result);
  }

  kv::StepBatch make_batch(const std::vector<TestRows>& sequences) const {
    kv::StepBatch batch;
    batch.groups.resize(spec_.kv_groups.size());
    for (kv::GroupTables& tables : batch.groups) tables.starts = {0};
    for (const TestRows& rows : sequences) {
      const int count = static_cast<int>(rows.tokens.size());
      batch.sequences.push_back({batch.num_rows(), count, rows.position, 0, rows.rope_variant});
      const int blocks = kv::blocks_for_tokens(rows.position + count);
      for (kv::GroupTables& tables : batch.groups) {
        for (int b = 0; b < blocks; ++b) {
          tables.blocks.push_back(rows.first_block + b);
          const bool written_before = !rows.fresh || b < kv::blocks_for_tokens(rows.position);
          if (!written_before) tables.blocks_to_zero.push_back(rows.first_block + b);
        }
        tables.starts.push_back(static_cast<int32_t>(tables.blocks.size()));
      }
      for (int i = 0; i < count; ++i) {
        batch.wanted_rows.push_back(batch.num_rows());
        batch.tokens.push_back(rows.tokens[static_cast<size_t>(i)]);
        batch.positions.push_back(rows.position + i);
      }
    }
    return batch;
  }

  ModelFiles files_;
  DecoderSpec spec_;
  std::unique_ptr<backend::Device> device_;
  std::unique_ptr<ThreadPool> threads_;
  Decoder decoder_;
  backend::KvType kv_type_;
  int num_blocks_;
  std::unique_ptr<backend::KvStore> kv_;
  std::unique_ptr<DecoderContext> context_;
};

}  // namespace tercet::model
