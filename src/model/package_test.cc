#include "model/package.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backend/cpu/cpu_device.h"
#include "model/decoder_harness.h"

namespace tercet::model {
namespace {

std::string hostile(const std::string& name) {
  return std::string(TERCET_TEST_DATA) + "/hostile/" + name + ".gguf";
}

// Opens a model and loads its weights, as every command does.
Status load(const std::string& path) {
  TERCET_ASSIGN(const Package package, open_package(path));
  ThreadPool threads(1);
  const auto device = backend::make_cpu_device({});
  TERCET_ASSIGN(const DecoderWeights weights, load_weights(package.spec, package.tensors, *device, threads));
  return {};
}

struct HostileCase {
  const char* file;
  const char* says;  // part of the message
};
void PrintTo(const HostileCase& c, std::ostream* os) { *os << c.file; }

// The files that the reader accepts and the loader must refuse (tests/data/hostile/README.md).
class HostileModel : public testing::TestWithParam<HostileCase> {};

TEST_P(HostileModel, IsRefusedWithItsFault) {
  const std::string path = hostile(GetParam().file);
  const Status loaded = load(path);
  ASSERT_FALSE(loaded.ok());
  const std::string message = loaded.error().to_string();
  EXPECT_NE(message.find(path), std::string::npos) << message;
  EXPECT_NE(message.find(GetParam().says), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Files, HostileModel,
    testing::Values(
        HostileCase{"shape_mismatch", "blk.0.attn_k.weight"},
        HostileCase{"hp_block_count_2147483648", "layers"}, HostileCase{"hp_block_count_0", "layers"},
        HostileCase{"hp_embedding_length_0", "width"},
        HostileCase{"hp_attention_head_count_0", "attention heads"},
        HostileCase{"hp_attention_head_count_kv_0", "KV head count"},
        HostileCase{"hp_attention_head_count_3", "attention heads"},
        HostileCase{"hp_feed_forward_length_4294967295", "feed-forward length"},
        HostileCase{"hp_rope_dimension_count_7", "rotary dimension count"},
        HostileCase{"hp_block_count_string", "llama.block_count"}, HostileCase{"hp_eps_nan", "epsilon"},
        HostileCase{"missing_tensor", "blk.0.ffn_up.weight"},
        HostileCase{"missing_architecture", "general.architecture"},
        HostileCase{"unknown_architecture", "llamalamma"}, HostileCase{"bos_out_of_range", "bos_token_id"},
        HostileCase{"scores_too_short", "tokenizer.ggml.scores"}, HostileCase{"byte_token_bad", "<0x-1>"}),
    [](const auto& info) { return std::string(info.param.file); });

TEST(Package, LoadsTheCompleteTinyModel) {
  const Status loaded = load(hostile("valid_llama"));
  EXPECT_TRUE(loaded.ok()) << loaded.error().to_string();
}

// Row B10: tied embeddings. Row B14's twin at run time: a damaged weight is an error that names the layer.
TEST(Package, TheTinyModelRunsAndADamagedOneNamesItsLayer) {
  DecoderHarness harness(hostile("valid_llama"),
                         {.device = {}, .kv_type = backend::KvType::kF32, .num_threads = 1, .num_blocks = 4});
  for (float logit : harness.run({{{1, 2, 3}, 0, 0, true}})) EXPECT_TRUE(std::isfinite(logit));

  auto package = open_package(hostile("valid_nan_row"));
  ASSERT_TRUE(package.ok());
  ThreadPool threads(1);
  const auto device = backend::make_cpu_device({});
  auto weights = load_weights(package->spec, package->tensors, *device, threads);
  ASSERT_TRUE(weights.ok());
  const Decoder decoder(package->spec, *std::move(weights));
  const auto kv = device->kv_store(decoder.kv_store_spec({1}, backend::KvType::kF32));
  DecoderContext context(*device, threads);
  kv::StepBatch batch;
  batch.tokens = {1};
  batch.positions = {0};
  batch.wanted_rows = {0};
  batch.sequences = {{0, 1, 0, 0}};
  batch.groups = {{.blocks = {0}, .starts = {0, 1}, .blocks_to_zero = {0}}};
  const auto logits = decoder.forward(context, **kv, batch);
  ASSERT_FALSE(logits.ok());
  EXPECT_EQ(logits.error().where, "layer 0");
}

}  // namespace
}  // namespace tercet::model
