#include "app/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "base/float16.h"
#include "format/gguf_writer.h"
#include "model/golden_folder.h"

namespace tercet::app {
namespace {

using nlohmann::json;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::string kHostile = TERCET_TEST_DATA "/hostile/";
const std::string kGguf = TERCET_TEST_DATA "/gguf/";

struct Outcome {
  Status status;
  std::string output;
};

Outcome run(const InspectOptions& options) {
  std::ostringstream out;
  Status status = inspect(options, out);
  return {std::move(status), out.str()};
}

TEST(Inspect, PrintsMetadataTensorsAndTotals) {
  const auto [status, output] = run({.path = kHostile + "valid_llama.gguf"});
  ASSERT_TRUE(status.ok());
  EXPECT_THAT(output, HasSubstr("GGUF version 3, 1 file, 2.7 kB"));
  EXPECT_THAT(output, testing::ContainsRegex("general.architecture +string +\"llama\""));
  EXPECT_THAT(output,
              testing::ContainsRegex("tokenizer.ggml.tokens +string\\[12\\] +\\[\"[^\n]*, \\.\\.\\.\\]"));
  EXPECT_THAT(output, testing::ContainsRegex("blk.0.attn_q.weight +F16 +\\[8, 8\\] +128 B"));
  EXPECT_THAT(output, HasSubstr("bits per weight"));
  // One layer, one head of 8: (8 + 8) * 2 bytes * 1024 tokens.
  EXPECT_THAT(output, testing::ContainsRegex("KV cache +32.8 kB per 1024 tokens of context in F16"));
}

TEST(Inspect, JsonHoldsWholeValues) {
  const auto [status, output] = run({.path = kGguf + "tiny-mixed.gguf", .json = true});
  ASSERT_TRUE(status.ok());
  const json root = json::parse(output);
  EXPECT_EQ(root["metadata"]["m.uint64"], UINT64_MAX);
  EXPECT_EQ(root["metadata"]["m.int64"], INT64_MIN);
  EXPECT_EQ(root["metadata"]["m.bool_true"], true);
  EXPECT_EQ(root["metadata"]["a.bool"], json({true, false, true}));
  EXPECT_EQ(root["metadata"]["a.string"].size(), 5u);
  EXPECT_EQ(root["tensors"].size(), 34u);
  EXPECT_EQ(root["types"]["Q4_0"]["bits_per_weight"], 4.5);
  EXPECT_TRUE(root["kv_bytes_per_1024_tokens_f16"].is_null());
}

TEST(Inspect, TextIsEscaped) {
  const auto tiny = run({.path = kGguf + "tiny-mixed.gguf"});
  EXPECT_THAT(tiny.output, HasSubstr("żółć 漢字 🦙 tab\\u{9}here \\\"quoted\\\" back\\\\slash"));
  EXPECT_THAT(run({.path = kHostile + "key_invalid_utf8.gguf"}).output, HasSubstr("\\xff\\xfe"));
}

TEST(Inspect, CheckNamesTensorAndRowOfANaN) {
  const auto [status, output] = run({.path = kHostile + "valid_nan_row.gguf", .check = true});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(status.error().message, HasSubstr("blk.0.ffn_up.weight: 8 NaN and 0 Inf in 1 row: 3"));
  EXPECT_THAT(output, HasSubstr("blk.0.ffn_up.weight: 8 NaN and 0 Inf in 1 row: 3"));

  const auto as_json = run({.path = kHostile + "valid_nan_row.gguf", .check = true, .json = true});
  const json found = json::parse(as_json.output)["check"]["non_finite"];
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0]["first_rows"], json({3}));
}

TEST(Inspect, CheckPassesAFiniteModelAndOnlyRunsWhenAsked) {
  EXPECT_TRUE(run({.path = kHostile + "valid_llama.gguf", .check = true}).status.ok());
  EXPECT_TRUE(run({.path = kHostile + "valid_nan_row.gguf"}).status.ok());
}

TEST(Inspect, CheckSaysWhatItCannotRead) {
  const auto [status, output] = run({.path = kGguf + "tiny-mixed.gguf", .check = true});
  EXPECT_TRUE(status.ok()) << status.error().to_string();
  EXPECT_THAT(output,
              HasSubstr("not checked, these types hold no weights that can be read: F64, I16, I32, I64, I8"));
}

// A broken scale makes a whole block NaN or Inf, also in rows longer than one piece of the check.
TEST(Inspect, CheckFindsInfInTheScaleOfABlock) {
  const std::string path = (std::filesystem::path(testing::TempDir()) / "tercet_inspect_inf.gguf").string();
  constexpr int64_t kRow = 32 * 1024;
  std::vector<uint8_t> data(static_cast<size_t>(2 * dtype_row_bytes(DType::kQ8_0, kRow)), 0);
  const size_t last_block = data.size() - 34;
  data[last_block + 1] = 0x7c;  // d = Inf
  data[last_block + 2] = 1;     // Inf * 1; the other 31 are Inf * 0
  format::GgufWriter writer;
  writer.add_tensor("w", DType::kQ8_0, std::vector<int64_t>{kRow, 2});
  ASSERT_TRUE(writer.begin(path).ok());
  ASSERT_TRUE(writer.write_tensor(std::as_bytes(std::span(data))).ok());
  ASSERT_TRUE(writer.finish().ok());
  EXPECT_THAT(run({.path = path, .check = true}).output, HasSubstr("w: 31 NaN and 1 Inf in 1 row: 1\n"));
  std::filesystem::remove(path);
}

TEST(Inspect, NotesWhatAnEngineWillAssume) {
  const auto [status, output] = run({.path = kGguf + "tiny-mixed.gguf"});
  EXPECT_THAT(output, Not(AnyOf(HasSubstr("is missing"), HasSubstr("is absent"))));
  const std::string path = (std::filesystem::path(testing::TempDir()) / "tercet_inspect_notes.gguf").string();
  format::GgufWriter writer;
  writer.set("tokenizer.ggml.model", "gpt2");
  writer.add_tensor("token_embd.weight", DType::kF32, std::vector<int64_t>{1});
  writer.add_tensor("w", DType::kIQ2_XXS, std::vector<int64_t>{256});
  ASSERT_TRUE(writer.begin(path).ok());
  ASSERT_TRUE(writer.write_tensor(std::vector<std::byte>(4)).ok());
  ASSERT_TRUE(writer.write_tensor(std::vector<std::byte>(66)).ok());
  ASSERT_TRUE(writer.finish().ok());
  const json notes = json::parse(run({.path = path, .json = true}).output)["notes"];
  EXPECT_THAT(notes,
              ElementsAre(HasSubstr("general.architecture is missing"),
                          HasSubstr("tokenizer.ggml.pre is missing"), HasSubstr("output.weight is absent"),
                          HasSubstr("IQ2_XXS takes 3.62 bits a weight in memory, 2.06 in the file")));
  std::filesystem::remove(path);
}

TEST(Inspect, ShowsSafetensorsFiles) {
  const auto [status, output] = run({.path = kHostile + "valid.safetensors"});
  ASSERT_TRUE(status.ok());
  EXPECT_THAT(output, HasSubstr("valid.safetensors: safetensors, 1 file, 237 B"));
  EXPECT_THAT(output, testing::ContainsRegex("a +F32 +\\[2, 4\\] +32 B"));
  const auto damaged = run({.path = kHostile + "valid_nan_row.safetensors", .check = true});
  EXPECT_FALSE(damaged.status.ok());
  EXPECT_THAT(damaged.output, HasSubstr("b: 4 NaN and 0 Inf in 1 row: 2"));
}

TEST(Inspect, ShowsFoldersAsTheEngineReadsThem) {
  const auto [status, output] = run({.path = std::string(TERCET_TEST_DATA) + "/tiny/target"});
  ASSERT_TRUE(status.ok());
  EXPECT_THAT(output, testing::ContainsRegex("llama.block_count +uint32 +8"));
  EXPECT_THAT(output, testing::ContainsRegex("model.norm.weight +BF16 +\\[256\\]"));
  // Eight layers, two KV heads of 64: 8 * 2 * (64 + 64) * 2 bytes * 1024 tokens.
  EXPECT_THAT(output, HasSubstr("4.2 MB per 1024 tokens"));
}

// Three layers, each with one head: a latent of 32 and a rotated key of 16 as K, the latent again as V.
TEST(Inspect, SizesTheCacheOfLatentAttention) {
  const model::GoldenFolder folder("deepseek_v3", "config.json");
  const auto [status, output] = run({.path = folder.path(), .json = true});
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(json::parse(output)["kv_bytes_per_1024_tokens_f16"], 3 * (32 + 16 + 32) * 2 * 1024);
}

TEST(Inspect, SaysWhyTheEngineCannotRunAModel) {
  const auto [status, output] = run({.path = kHostile + "unknown_architecture.gguf"});
  ASSERT_TRUE(status.ok());
  EXPECT_THAT(output, HasSubstr("cannot be run: "));
  EXPECT_THAT(output, HasSubstr("\"llamalamma\", which is not supported"));
  EXPECT_THAT(output, testing::ContainsRegex("KV cache +unknown per 1024"));
}

// Impossible hyper-parameters are the loader's to refuse; here they must only do no harm.
TEST(Inspect, HostileFilesEndWell) {
  for (const auto& item : std::filesystem::directory_iterator(kHostile)) {
    if (item.path().extension() == ".md") continue;
    for (const bool as_json : {false, true}) {
      const auto [status, output] = run({.path = item.path().string(), .check = true, .json = as_json});
      EXPECT_TRUE(status.ok() || !status.error().message.empty()) << item.path();
      EXPECT_TRUE(!as_json || output.empty() || json::accept(output)) << item.path();
    }
  }
}

}  // namespace
}  // namespace tercet::app
