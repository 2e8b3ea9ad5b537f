// What files may do differently and still mean the same: fused tensors, split ones; and what no file may say.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>

#include "base/float16.h"
#include "model/exactness.h"
#include "model/golden_folder.h"
#include "model/rounded_tensors.h"

namespace tercet::model {
namespace {

// Tensors in memory.
class MemoryTensors final : public TensorReader {
 public:
  struct Tensor {
    TensorInfo info;
    std::vector<std::byte> bytes;
  };

  explicit MemoryTensors(const TensorSource& source) {
    for (const TensorInfo& info : source.tensors()) {
      Tensor tensor{info, {}};
      for (int64_t expert = 0; expert < info.experts(); ++expert) {
        const auto data = source.read(info, expert);
        TERCET_CHECK(data.ok());
        tensor.bytes.insert(tensor.bytes.end(), data->bytes.begin(), data->bytes.end());
      }
      tensors_.emplace(info.name, std::move(tensor));
    }
  }

  bool has(const std::string& name) const { return tensors_.contains(name); }
  Tensor take(const std::string& name) { return std::move(tensors_.extract(name).mapped()); }
  void put(Tensor tensor) { tensors_[tensor.info.name] = std::move(tensor); }

  // Rows of the parts one after another, expert by expert, under a new name.
  void fuse(const std::vector<std::string>& parts, const std::string& name) {
    std::vector<Tensor> taken;
    for (const std::string& part : parts) taken.push_back(take(part));
    Tensor fused{taken.front().info, {}};
    fused.info.name = name;
    const bool is_vector = fused.info.shape.size() == 1;
    int64_t& rows = fused.info.shape[is_vector ? 0 : 1];
    rows = 0;
    for (const Tensor& part : taken) rows += part.info.shape[is_vector ? 0 : 1];
    for (int64_t expert = 0; expert < fused.info.experts(); ++expert) {
      for (const Tensor& part : taken) {
        const auto begin = part.bytes.begin() + expert * part.info.expert_bytes();
        fused.bytes.insert(fused.bytes.end(), begin, begin + part.info.expert_bytes());
      }
    }
    put(std::move(fused));
  }

  Result<TensorData> read(const TensorInfo& info, int64_t expert) const override {
    const Tensor& tensor = tensors_.at(info.name);
    return TensorData{std::span(tensor.bytes)
                          .subspan(static_cast<size_t>(expert * info.expert_bytes()),
                                   static_cast<size_t>(info.expert_bytes())),
                      nullptr};
  }
  void release(const TensorInfo&, int64_t) const override {}
  void release_all() const override {}

  static TensorSource source(std::shared_ptr<const MemoryTensors> memory) {
    std::vector<TensorInfo> infos;
    for (const auto& [name, tensor] : memory->tensors_) infos.push_back(tensor.info);
    return TensorSource("memory", std::move(infos), std::move(memory));
  }

 private:
  std::map<std::string, Tensor> tensors_;
};

ModelFiles open_golden(const std::string& family) {
  const GoldenFolder folder(family, "config.json");
  auto files = open_model_files(folder.path());
  TERCET_CHECK(files.ok());
  return *std::move(files);
}

std::vector<float> logits(ModelFiles files) {
  DecoderHarness::Options options;
  options.num_blocks = 8;
  DecoderHarness harness(std::move(files), options);
  return harness.run({{random_tokens(40, 9, 512), 0, 0, true}});
}

// Changes the tensors of every layer; the logits must keep their bits.
void expect_same_logits(ModelFiles files,
                        const std::function<void(MemoryTensors&, const std::string&)>& change) {
  auto memory = std::make_shared<MemoryTensors>(files.tensors);
  const std::vector<float> expected = logits(files);
  for (int layer = 0; memory->has("blk." + std::to_string(layer) + ".attn_norm.weight"); ++layer)
    change(*memory, "blk." + std::to_string(layer) + ".");
  files.tensors = MemoryTensors::source(memory);
  const std::vector<float> got = logits(std::move(files));
  ASSERT_EQ(expected.size(), got.size());
  EXPECT_EQ(0, std::memcmp(expected.data(), got.data(), got.size() * sizeof(float)));
}

TEST(Loading, FusedQueriesKeysAndValuesWithTheirBiases) {
  // Biases, and half of each head in neighbouring pairs.
  expect_same_logits(open_golden("glm"), [](MemoryTensors& tensors, const std::string& layer) {
    for (const std::string kind : {".weight", ".bias"})
      tensors.fuse({layer + "attn_q" + kind, layer + "attn_k" + kind, layer + "attn_v" + kind},
                   layer + "attn_qkv" + kind);
  });
}

TEST(Loading, FusedGateAndUp) {
  expect_same_logits(open_golden("llama"), [](MemoryTensors& tensors, const std::string& layer) {
    tensors.fuse({layer + "ffn_gate.weight", layer + "ffn_up.weight"}, layer + "ffn_up.weight");
  });
}

TEST(Loading, FusedGateAndUpOfExperts) {
  expect_same_logits(open_golden("qwen3_moe"), [](MemoryTensors& tensors, const std::string& layer) {
    if (tensors.has(layer + "ffn_gate_exps.weight"))
      tensors.fuse({layer + "ffn_gate_exps.weight", layer + "ffn_up_exps.weight"},
                   layer + "ffn_gate_up_exps.weight");
  });
}

// kv_b in one piece, and as llama.cpp splits it: k_b transposed, both stacked by head.
TEST(Loading, LatentAttentionsKvBWholeAndSplit) {
  constexpr int64_t kHeads = 4, kNope = 16, kValue = 24, kLatent = 32;
  for (const DType type : {DType::kF32, DType::kBF16}) {
    ModelFiles files = open_golden("deepseek_v3");
    // Begin from the form in one piece, whichever the folder is presented in.
    auto whole = std::make_shared<MemoryTensors>(files.tensors);
    const auto width = static_cast<int64_t>(type == DType::kF32 ? 4 : 2);
    for (int layer = 0; layer < 3; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      if (whole->has(prefix + "attn_kv_b.weight")) continue;
      const MemoryTensors::Tensor k = whole->take(prefix + "attn_k_b.weight");
      const MemoryTensors::Tensor v = whole->take(prefix + "attn_v_b.weight");
      MemoryTensors::Tensor kv{
          {prefix + "attn_kv_b.weight", DType::kF32, {kLatent, kHeads * (kNope + kValue)}},
          std::vector<std::byte>(k.bytes.size() + v.bytes.size())};
      for (int64_t head = 0; head < kHeads; ++head) {
        for (int64_t row = 0; row < kNope; ++row)
          for (int64_t i = 0; i < kLatent; ++i)
            std::memcpy(&kv.bytes[static_cast<size_t>(((head * (kNope + kValue) + row) * kLatent + i) * 4)],
                        &k.bytes[static_cast<size_t>(((head * kLatent + i) * kNope + row) * 4)], 4);
        std::memcpy(&kv.bytes[static_cast<size_t>((head * (kNope + kValue) + kNope) * kLatent * 4)],
                    &v.bytes[static_cast<size_t>(head * kValue * kLatent * 4)],
                    static_cast<size_t>(kValue * kLatent * 4));
      }
      whole->put(std::move(kv));
    }
    files.tensors = MemoryTensors::source(whole);
    if (type != DType::kF32) files.tensors = rounded(files.tensors, type);
    expect_same_logits(files, [&](MemoryTensors& tensors, const std::string& layer) {
      const MemoryTensors::Tensor kv = tensors.take(layer + "attn_kv_b.weight");
      MemoryTensors::Tensor k{{layer + "attn_k_b.weight", type, {kNope, kLatent, kHeads}},
                              std::vector<std::byte>(static_cast<size_t>(kHeads * kNope * kLatent * width))};
      MemoryTensors::Tensor v{{layer + "attn_v_b.weight", type, {kLatent, kValue, kHeads}}, {}};
      for (int64_t head = 0; head < kHeads; ++head) {
        const std::byte* rows = kv.bytes.data() + head * (kNope + kValue) * kLatent * width;
        for (int64_t row = 0; row < kNope; ++row)
          for (int64_t i = 0; i < kLatent; ++i)
            std::memcpy(&k.bytes[static_cast<size_t>(((head * kLatent + i) * kNope + row) * width)],
                        rows + (row * kLatent + i) * width, static_cast<size_t>(width));
        v.bytes.insert(v.bytes.end(), rows + kNope * kLatent * width,
                       rows + (kNope + kValue) * kLatent * width);
      }
      tensors.put(std::move(k));
      tensors.put(std::move(v));
    });
  }
}

// Every number of the metadata replaced by values that no model has: an error or a model, never worse.
TEST(Loading, HostileNumbersInTheMetadataOfEveryFamily) {
  const auto device = backend::make_cpu_device({});
  ThreadPool threads(1);
  int refused = 0, accepted = 0;
  for (const auto& entry : std::filesystem::directory_iterator(golden_path(""))) {
    if (!entry.is_directory()) continue;
    const ModelFiles files = open_golden(entry.path().filename().string());
    for (const format::GgufEntry& target : files.metadata->entries()) {
      if (target.item_type == format::GgufType::kString) continue;
      const bool is_float =
          target.item_type == format::GgufType::kFloat32 || target.item_type == format::GgufType::kFloat64;
      for (const double value : {0.0, 1.0, 3.0, 7.0, 513.0, 2147483647.0, 4294967295.0, -1.0, 1e300,
                                 std::numeric_limits<double>::quiet_NaN()}) {
        if (!is_float && !(value >= 0 && value < 1e18)) continue;
        format::Metadata changed("changed");
        for (const format::GgufEntry& other : files.metadata->entries())
          if (other.key != target.key) changed.set(other);
        if (is_float) {
          changed.set(target.key, value);
        } else {
          changed.set(target.key, static_cast<uint64_t>(value));
        }
        const auto spec = model_spec({changed, files.tensors});
        const bool loads = spec.ok() && load_weights(*spec, files.tensors, *device, threads).ok();
        ++(loads ? accepted : refused);
      }
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace tercet::model
