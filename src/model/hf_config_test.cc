#include "model/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "base/file.h"
#include "model/families/hf.h"
#include "model/golden_check.h"
#include "model/hf_config_fuzz.h"
#include "model/package.h"

namespace tercet::model {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

HfConfig parse(const std::string& text) { return *HfConfig::parse(text, "config.json"); }

TEST(HfConfig, ReadsFieldsOfTheirKind) {
  const HfConfig config =
      parse(R"({"i": 3, "f": 0.5, "s": "x", "b": true, "n": null, "l": [1, 2], "o": {"p": 7}})");
  EXPECT_EQ(*config.get_int("i"), 3);
  EXPECT_EQ(*config.get_float("i"), 3.0);
  EXPECT_EQ(*config.get_float("f"), 0.5);
  EXPECT_EQ(*config.get_string("s"), "x");
  EXPECT_TRUE(*config.get_bool("b"));
  EXPECT_FALSE(config.has("n"));
  EXPECT_EQ(*config.get_int_or("n", 5), 5);
  EXPECT_THAT(*config.get_ints("l"), ElementsAre(1, 2));
  EXPECT_THAT(*config.get_ints("i"), ElementsAre(3));
  EXPECT_EQ(*config.get_object("o")->get_int("p"), 7);
}

TEST(HfConfig, ErrorsNameFileFieldAndWhatWasFound) {
  const HfConfig config = parse(R"({"f": 0.5, "o": {"p": "seven"}, "big": 18446744073709551615})");
  EXPECT_EQ(config.get_int("f").error().to_string(), "config.json: f: is 0.5; a whole number is expected");
  EXPECT_THAT(config.get_int("absent").error().to_string(), HasSubstr("config.json: absent: is missing"));
  EXPECT_THAT(config.get_object("o")->get_int("p").error().to_string(),
              HasSubstr("config.json: o.p: is \"seven\""));
  EXPECT_FALSE(config.get_int("big").ok());
  EXPECT_FALSE(HfConfig::parse("[]", "x").ok());
  EXPECT_FALSE(HfConfig::parse("{", "x").ok());
}

TEST(HfConfig, DeepNestingIsAnErrorAndNoOverflow) {
  constexpr size_t kDeep = 200'000;
  const std::string deep =
      R"({"hidden_size": )" + std::string(kDeep, '[') + std::string(kDeep, ']') + R"(, "o": {}})";
  const auto config = HfConfig::parse(deep, "config.json");
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.error().to_string(), "config.json: nests values more than 64 deep");
  EXPECT_TRUE(HfConfig::parse(R"({"a": )" + std::string(60, '[') + std::string(60, ']') + "}", "x").ok());
}

// A golden folder whose config.json is changed.
class ChangedConfig {
 public:
  explicit ChangedConfig(const std::string& family)
      : folder_(family, "config.json"), config_(json::parse(*read_file(folder_ / "config.json"))) {}

  json& config() { return config_; }
  std::string error() {
    std::filesystem::remove(folder_ / "config.json");
    std::ofstream(folder_ / "config.json") << config_.dump();
    const auto files = open_model_files(folder_.path());
    if (!files.ok()) return files.error().to_string();
    read_all(files->tensors);
    const auto spec = model_spec(files->source());
    return spec.ok() ? "" : spec.error().to_string();
  }
  std::string path(const std::string& name) const { return folder_ / name; }

 private:
  GoldenFolder folder_;
  json config_;
};

TEST(HfFolder, QuantizedCheckpointsAreNamed) {
  for (const char* method : {"gptq", "awq", "fp8", "bitsandbytes", "compressed-tensors", "mxfp4"}) {
    ChangedConfig folder("llama");
    folder.config()["quantization_config"] = {{"quant_method", method}};
    EXPECT_THAT(folder.error(), HasSubstr(method));
  }
}

TEST(HfFolder, UnknownModelsAndSettingsAreNamed) {
  ChangedConfig unknown("llama");
  unknown.config()["architectures"] = {"LlamalammaForCausalLM"};
  EXPECT_THAT(unknown.error(), HasSubstr("\"LlamalammaForCausalLM\""));
  ChangedConfig by_type("llama");
  by_type.config().erase("architectures");
  EXPECT_EQ(by_type.error(), "");
  ChangedConfig rope("qwen2");
  rope.config()["rope_parameters"]["rope_type"] = "dynamic";
  EXPECT_THAT(rope.error(), HasSubstr("rope_parameters.rope_type: is \"dynamic\""));
  ChangedConfig activation("llama");
  activation.config()["hidden_act"] = "relu";
  EXPECT_THAT(activation.error(), HasSubstr("hidden_act: is \"relu\""));
  ChangedConfig untied("qwen2");
  untied.config()["tie_word_embeddings"] = false;
  EXPECT_THAT(untied.error(), HasSubstr("lm_head.weight is missing"));
}

TEST(HfFolder, WithoutATokenizerTextIsRefusedByName) {
  ChangedConfig folder("llama");
  const auto package = open_package(std::filesystem::path(folder.path("x")).parent_path().string());
  ASSERT_FALSE(package.ok());
  EXPECT_THAT(package.error().to_string(), HasSubstr("has no tokenizer.json"));
}

// As sentence-transformers saves one: no prefix of an outer model, and a folder that says how to pool.
TEST(HfFolder, AnEmbeddingModelIsTheInnerModelWithItsPooling) {
  std::string folder = testing::TempDir() + "tercet_embedding_XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string weights = *read_file(golden_path("qwen3") + "/model.safetensors");
  uint64_t header_size = 0;
  std::memcpy(&header_size, weights.data(), sizeof(header_size));
  std::string header = weights.substr(sizeof(header_size), header_size);
  for (size_t at; (at = header.find("\"model.")) != std::string::npos;) header.erase(at + 1, 6);
  header.resize(header_size, ' ');
  ASSERT_TRUE(write_file(folder + "/model.safetensors", weights.substr(0, sizeof(header_size)) + header +
                                                            weights.substr(sizeof(header_size) + header_size))
                  .ok());
  std::filesystem::copy_file(golden_path("qwen3") + "/config.json", folder + "/config.json");
  const GoldenFolder golden("qwen3", "config.json");
  const auto whole = open_model_files(golden.path());
  for (const auto& [mode, type] :
       {std::pair("pooling_mode_mean_tokens", 1u), std::pair("pooling_mode_lasttoken", 3u)}) {
    std::filesystem::create_directories(folder + "/1_Pooling");
    ASSERT_TRUE(write_file(folder + "/1_Pooling/config.json", json{{mode, true}}.dump()).ok());
    const auto files = open_model_files(folder);
    ASSERT_TRUE(files.ok()) << files.error().to_string();
    EXPECT_EQ(files->metadata->get_uint("qwen3.pooling_type").value(), type);
    ASSERT_EQ(files->tensors.tensors().size(), whole->tensors.tensors().size());
    for (const TensorInfo& tensor : whole->tensors.tensors()) {
      const TensorInfo* found = files->tensors.find(tensor.name);
      ASSERT_NE(found, nullptr) << tensor.name;
      EXPECT_TRUE(std::ranges::equal(files->tensors.read(*found)->bytes, whole->tensors.read(tensor)->bytes));
    }
  }
  EXPECT_FALSE(whole->metadata->has("qwen3.pooling_type"));
  std::filesystem::remove_all(folder);
}

// A field of any family's config replaced by something it should not be: an error, or a model; never a crash.
TEST(HfFolder, RandomChangesAreErrorsOrModels) {
  const json values[] = {nullptr,
                         -1,
                         0,
                         1,
                         3,
                         7,
                         1 << 20,
                         4294967296,
                         9223372036854775807,
                         0.5,
                         -1e300,
                         1e300,
                         "",
                         "x",
                         true,
                         json::array(),
                         {1, 2},
                         {"x"},
                         json::object(),
                         {{"rope_type", "yarn"}}};
  std::mt19937 random(11);
  int opened = 0;
  for (const char* family : kGoldenFamilies) {
    for (int i = 0; i < 60; ++i) {
      ChangedConfig folder(family);
      for (int changes = 1 + static_cast<int>(random() % 2); changes > 0; --changes) {
        json* object = &folder.config();
        if (random() % 4 == 0 && object->contains("rope_parameters")) object = &(*object)["rope_parameters"];
        if (!object->is_object() || object->empty()) continue;
        auto field = object->begin();
        std::advance(field, random() % object->size());
        *field = values[random() % std::size(values)];
      }
      opened += folder.error().empty();
    }
  }
  EXPECT_GT(opened, 100);
}

// What the fuzzer kept. The sanitizers judge the run.
TEST(HfFolder, ReplaysTheFuzzersInputs) {
  int replayed = 0;
  for (const auto& file : std::filesystem::directory_iterator(TERCET_TEST_DATA "/fuzz/hf_config")) {
    run_hf_input(*read_file(file.path().string()));
    ++replayed;
  }
  EXPECT_GT(replayed, 0);
}

}  // namespace
}  // namespace tercet::model
