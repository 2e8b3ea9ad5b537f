// A model converted is the same model: golden folders to GGUF and back.
#include "model/convert.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <fstream>

#include "base/file.h"
#include "format/gguf.h"
#include "model/convert_tensor.h"
#include "model/golden_check.h"
#include "model/package.h"
#include "model/rounded_tensors.h"

namespace tercet::model {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

ModelFiles open(const std::string& path) {
  auto files = open_model_files(path);
  TERCET_CHECK(files.ok());
  return *std::move(files);
}

std::vector<float> values_of(const TensorSource& source, const TensorInfo& tensor) {
  std::vector<float> values;
  for (int64_t e = 0; e < tensor.experts(); ++e) {
    const Status read = for_each_rows(source, tensor, e, [&](int64_t, std::span<const float> rows) {
      values.insert(values.end(), rows.begin(), rows.end());
      return Status();
    });
    TERCET_CHECK(read.ok());
  }
  return values;
}

// Logits of the same ids, compared bit for bit.
void expect_same_bits(ModelFiles a, ModelFiles b, const DecoderHarness::Options& options,
                      const std::vector<int32_t>& ids) {
  DecoderHarness from_a(std::move(a), options), from_b(std::move(b), options);
  const auto logits_a = logits_of(from_a, ids), logits_b = logits_of(from_b, ids);
  ASSERT_EQ(logits_a.size(), logits_b.size());
  EXPECT_EQ(0, std::memcmp(logits_a.data(), logits_b.data(), logits_a.size() * sizeof(float)));
}

DecoderHarness::Options shipped_options() {
  DecoderHarness::Options options;
  options.num_blocks = 16;
  return options;
}

class Convert : public testing::TestWithParam<const char*> {};

TEST_P(Convert, GgufComputesTheSameBits) {
  const GoldenFolder folder(GetParam(), "config.json");
  const std::string gguf = folder / "out.gguf";
  const auto report = convert_to_gguf(open(folder.path()), gguf);
  ASSERT_TRUE(report.ok()) << report.error().to_string();
  expect_golden(gguf, GetParam());

  for (const auto& options : {float_options(), shipped_options()})
    expect_same_bits(open(folder.path()), open(gguf), options, golden_logits(GetParam()).ids_b);
}

// A published checkpoint is BF16 or F16, and so is the file made from it.
TEST_P(Convert, HalfPrecisionComputesTheSameBits) {
  const GoldenFolder folder(GetParam(), "config.json");
  ASSERT_TRUE(convert_to_gguf(open(folder.path()), folder / "f32.gguf").ok());
  for (const DType type : {DType::kBF16, DType::kF16}) {
    const std::string halves = folder / std::string(dtype_name(type)), gguf = halves + ".gguf";
    ConvertOptions options;
    options.type = type;
    ASSERT_TRUE(convert_to_folder(open(folder / "f32.gguf"), halves, options).ok());
    const auto report = convert_to_gguf(open(halves), gguf);
    ASSERT_TRUE(report.ok()) << report.error().to_string();
    EXPECT_EQ(report->type, dtype_name(type));
    expect_same_bits(open(halves), open(gguf), shipped_options(), golden_logits(GetParam()).ids_b);
  }
}

TEST_P(Convert, AFolderFromGgufHoldsTheSameTensors) {
  const GoldenFolder folder(GetParam(), "config.json");
  const std::string gguf = folder / "out.gguf", back = folder / "back";
  ASSERT_TRUE(convert_to_gguf(open(folder.path()), gguf).ok());
  ConvertOptions options;
  options.type = DType::kF32;
  options.shard_bytes = 300'000;
  const auto report = convert_to_folder(open(gguf), back, options);
  ASSERT_TRUE(report.ok()) << report.error().to_string();
  expect_golden(back, GetParam());

  const auto original = format::SafetensorsFile::open(folder.path() + "/model.safetensors");
  const auto written = format::SafetensorsFile::open(back);
  ASSERT_TRUE(written.ok()) << written.error().to_string();
  EXPECT_GT(written->num_shards(), 1);
  EXPECT_EQ(written->tensors().size(), original->tensors().size());
  for (const format::SafetensorsTensor& tensor : original->tensors()) {
    const format::SafetensorsTensor* other = written->find(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    EXPECT_EQ(other->shape, tensor.shape) << tensor.name;
  }
  const ModelFiles a = open(folder.path()), b = open(back);
  for (const TensorInfo& tensor : a.tensors.tensors()) {
    const TensorInfo* other = b.tensors.find(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    EXPECT_LE(largest_difference(values_of(a.tensors, tensor), values_of(b.tensors, *other)), 1e-6f)
        << tensor.name;
  }
}

TEST_P(Convert, ToQ8RoundsWeightsAndNothingElse) {
  const GoldenFolder folder(GetParam(), "config.json");
  const std::string gguf = folder / "out.gguf";
  ConvertOptions options;
  options.type = DType::kQ8_0;
  const auto report = convert_to_gguf(open(folder.path()), gguf, options);
  ASSERT_TRUE(report.ok()) << report.error().to_string();
  const GoldenLogits golden = golden_logits(GetParam());
  ModelFiles original = open(folder.path());
  original.tensors = rounded_as(original.tensors, open(gguf).tensors);
  expect_same_bits(std::move(original), open(gguf), shipped_options(), golden.ids_b);
  DecoderHarness harness(gguf, float_options());
  const std::vector<float> logits = logits_of(harness, golden.ids_a);
  double error = 0, power = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    error += std::pow(static_cast<double>(logits[i] - golden.logits_a[i]), 2);
    power += std::pow(static_cast<double>(golden.logits_a[i]), 2);
  }
  EXPECT_LT(error / power, 0.01);
}

INSTANTIATE_TEST_SUITE_P(Families, Convert, testing::ValuesIn(kGoldenFamilies),
                         [](const auto& info) { return std::string(info.param); });

TEST(ConvertFile, AFullDiskLeavesNothingBehind) {
  const GoldenFolder folder("qwen2", "config.json");
  const ModelFiles files = open(folder.path());
  const std::string gguf = folder / "out.gguf", back = folder / "back";
  std::ofstream(gguf) << "what was there";
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {100'000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto to_gguf = convert_to_gguf(files, gguf);
  const auto to_folder = convert_to_folder(files, back);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(to_gguf.ok());
  ASSERT_FALSE(to_folder.ok());
  EXPECT_THAT(to_gguf.error().to_string(), HasSubstr("cannot write"));
  EXPECT_EQ(*read_file(gguf), "what was there");
  EXPECT_FALSE(fs::exists(back));
  for (const auto& item : fs::directory_iterator(folder.path()))
    EXPECT_EQ(item.path().string().find(".part"), std::string::npos) << item.path();
}

TEST(ConvertFile, WhatCannotBeDoneSaysSo) {
  const GoldenFolder folder("qwen2", "config.json");
  const ModelFiles files = open(folder.path());
  ConvertOptions options;
  options.type = DType::kQ4_K;
  EXPECT_THAT(convert_to_gguf(files, folder / "out.gguf", options).error().to_string(), HasSubstr("Q4_K"));
  options.type = DType::kQ8_0;
  EXPECT_THAT(convert_to_folder(files, folder / "back", options).error().to_string(), HasSubstr("Q8_0"));
  EXPECT_THAT(convert_to_folder(files, folder.path()).error().to_string(), HasSubstr("exists already"));
}

// The tiny trained model has a tokenizer of its own.
TEST(ConvertFile, TheTokenizerComesAlong) {
  const std::string target = std::string(TERCET_TEST_DATA) + "/tiny/target";
  const GoldenFolder scratch("qwen2", "config.json");
  const std::string gguf = scratch / "tiny.gguf", back = scratch / "tiny";
  const auto report = convert_to_gguf(open(target), gguf);
  ASSERT_TRUE(report.ok()) << report.error().to_string();
  EXPECT_TRUE(report->notes.empty());
  const auto folder_report = convert_to_folder(open(gguf), back);
  ASSERT_TRUE(folder_report.ok()) << folder_report.error().to_string();
  EXPECT_TRUE(folder_report->notes.empty()) << folder_report->notes[0];
  const auto a = open_package(target), b = open_package(gguf), c = open_package(back);
  ASSERT_TRUE(a.ok() && b.ok() && c.ok());
  const std::string text = "def f(x):\n    return x + 1  # It's 1234.\n";
  EXPECT_EQ(a->tokenizer.encode(text), b->tokenizer.encode(text));
  EXPECT_EQ(a->tokenizer.encode(text), c->tokenizer.encode(text));
  EXPECT_EQ(a->tokenizer.eos(), b->tokenizer.eos());
  EXPECT_EQ(a->tokenizer.eos(), c->tokenizer.eos());
  EXPECT_EQ(a->chat_template->source(), b->chat_template->source());
  EXPECT_EQ(a->chat_template->source(), c->chat_template->source());
  const ModelFiles original = open(target), written = open(back);
  for (const TensorInfo& tensor : original.tensors.tensors()) {
    const TensorInfo* other = written.tensors.find(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    EXPECT_EQ(other->type, tensor.type) << tensor.name;
    EXPECT_EQ(values_of(original.tensors, tensor), values_of(written.tensors, *other)) << tensor.name;
  }
}

}  // namespace
}  // namespace tercet::model
