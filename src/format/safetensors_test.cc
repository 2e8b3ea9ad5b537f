#include "format/safetensors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "format/safetensors_writer.h"

namespace tercet::format {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

const std::string kHostileFolder = std::string(TERCET_TEST_DATA) + "/hostile/";

class SafetensorsTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string("tercet_safetensors_") + info->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // One file of tensors of four floats each.
  void write(const std::string& name, const std::vector<std::string>& tensors) const {
    SafetensorsWriter writer;
    const std::vector<int64_t> shape = {2, 2};
    for (const std::string& tensor : tensors) writer.add_tensor(tensor, DType::kF32, shape);
    ASSERT_TRUE(writer.begin(path(name)).ok());
    const float values[] = {1, 2, 3, 4};
    for (size_t i = 0; i < tensors.size(); ++i)
      ASSERT_TRUE(writer.write_tensor(std::as_bytes(std::span(values))).ok());
    ASSERT_TRUE(writer.finish().ok());
  }
  void write_index(const std::string& json) const {
    std::ofstream(path("model.safetensors.index.json")) << json;
  }

  fs::path folder_;
};

struct HostileSafetensorsCase {
  const char* file;
  const char* error;  // part of the message; nullptr: must load
};
void PrintTo(const HostileSafetensorsCase& c, std::ostream* os) { *os << c.file; }

constexpr HostileSafetensorsCase kHostileCases[] = {
    {"valid", nullptr},
    {"valid_nan_row", nullptr},
    {"st_zero_size_tensor", nullptr},
    {"st_empty", "has 0 bytes"},
    {"st_seven_bytes", "has 7 bytes"},
    {"st_header_len_past_eof", "is the download complete?"},
    {"st_header_len_200mb", "header of 200000000 bytes"},
    {"st_header_len_2e63", "header of 9223372036854775808 bytes"},
    {"st_header_len_wrap", "header of 18446744073709551608 bytes"},
    {"st_header_len_0", "is not JSON"},
    {"st_header_short", "is not JSON"},
    {"st_not_json", "is not JSON"},
    {"st_json_array", "is an array and not an object of tensors"},
    {"st_json_deep", "the header"},
    {"st_json_bad_utf8", "is not JSON"},
    {"st_offset_past_eof", "is the download complete?"},
    {"st_offset_reversed", "lies at bytes"},
    {"st_offset_negative", "holds the number -32"},
    {"st_offset_huge", "lies at bytes 9223372036854775808"},
    {"st_offset_three", "has 3 data_offsets"},
    {"st_span_mismatch", "has 32 bytes for the shape"},
    {"st_overlap", "overlap"},
    {"st_gap", "8 bytes before tensor"},
    {"st_trailing", "16 bytes after the last tensor"},
    {"st_trunc_data", "is the download complete?"},
    {"st_duplicate_key", "the name \"a\" appears twice"},
    {"st_dtype_unknown", "unknown dtype \"F12\""},
    {"st_dtype_number", "\"dtype\" of tensor"},
    {"st_shape_negative", "holds the number -4"},
    {"st_shape_float", "holds the number 4.5"},
    {"st_shape_overflow", "impossible shape"},
    {"st_shape_string", "holds a string"},
    {"st_missing_offsets", "has no \"data_offsets\""},
    {"st_entry_not_object", "is the number 7 and not an object"},
    {"st_metadata_not_string", "__metadata__ holds the number"},
};

class HostileSafetensors : public testing::TestWithParam<HostileSafetensorsCase> {};

TEST_P(HostileSafetensors, EndsAsItsReadmeSays) {
  const auto& [name, error] = GetParam();
  const std::string path = kHostileFolder + name + ".safetensors";
  const auto file = SafetensorsFile::open(path);
  if (error == nullptr) {
    EXPECT_TRUE(file.ok()) << file.error().to_string();
    return;
  }
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.error().message, HasSubstr(error));
  EXPECT_EQ(file.error().where, path);
}

INSTANTIATE_TEST_SUITE_P(Files, HostileSafetensors, testing::ValuesIn(kHostileCases),
                         [](const auto& info) { return std::string(info.param.file); });

TEST_F(SafetensorsTest, HostileTableNamesEveryFile) {
  for (const auto& item : fs::directory_iterator(kHostileFolder)) {
    if (item.path().extension() != ".safetensors") continue;
    const bool listed =
        std::any_of(std::begin(kHostileCases), std::end(kHostileCases),
                    [&](const HostileSafetensorsCase& c) { return item.path().stem() == c.file; });
    EXPECT_TRUE(listed) << item.path();
  }
}

TEST_F(SafetensorsTest, ReadsTypesShapesAndBytes) {
  const auto file = SafetensorsFile::open(kHostileFolder + "valid.safetensors");
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(file->tensors().size(), 2u);
  const SafetensorsTensor* a = file->find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->type(), DType::kF32);
  EXPECT_THAT(a->shape, ElementsAre(2, 4));
  EXPECT_EQ(a->data.size(), 32u);
  EXPECT_EQ(file->find("b")->type(), DType::kF16);
  EXPECT_EQ(file->find("c"), nullptr);
}

// A file cut anywhere is an error, never a crash.
TEST_F(SafetensorsTest, EveryTruncationIsAnError) {
  const std::string whole = *read_file(kHostileFolder + "valid.safetensors");
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    EXPECT_FALSE(SafetensorsFile::open_bytes(std::as_bytes(std::span(cut)), "memory").ok()) << size;
  }
}

// Headers changed at random places, by bytes that JSON is made of: whatever opens can be read whole.
TEST_F(SafetensorsTest, RandomHeadersFailOrCanBeReadWhole) {
  const std::string whole = *read_file(kHostileFolder + "valid.safetensors");
  constexpr std::string_view kAlphabet = "{}[]\",:0123456789-eE.abFI \\utrnl";
  std::mt19937 random(7);
  int opened = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = whole;
    const size_t header_bytes = whole.size() - 64;
    for (int changes = 1 + static_cast<int>(random() % 3); changes > 0; --changes)
      bytes[8 + random() % (header_bytes - 8)] = kAlphabet[random() % kAlphabet.size()];
    const auto file = SafetensorsFile::open_bytes(std::as_bytes(std::span(bytes)), "memory");
    if (!file.ok()) continue;
    ++opened;
    size_t covered = 0;
    for (const SafetensorsTensor& tensor : file->tensors()) {
      EXPECT_EQ(file->find(tensor.name), &tensor);
      covered += tensor.data.size();
    }
    EXPECT_EQ(covered, 64u);
  }
  EXPECT_GT(opened, 10);
}

TEST_F(SafetensorsTest, ReadsAllFilesOfAnIndex) {
  write("one.safetensors", {"a", "b"});
  write("two.safetensors", {"c"});
  SafetensorsIndex index;
  index.weight_map = {{"a", "one.safetensors"}, {"b", "one.safetensors"}, {"c", "two.safetensors"}};
  index.total_bytes = 48;
  write_index(safetensors_index_json(index));
  const auto file = SafetensorsFile::open(folder_.string());
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  EXPECT_EQ(file->num_shards(), 2);
  EXPECT_EQ(file->tensors().size(), 3u);
  EXPECT_EQ(file->shard_path(file->find("c")->shard), path("two.safetensors"));
  float value;
  std::memcpy(&value, file->find("c")->data.data() + 12, sizeof value);
  EXPECT_EQ(value, 4.0f);
}

TEST_F(SafetensorsTest, IndexesThatCannotBeAreErrors) {
  write("one.safetensors", {"a", "b"});
  write("two.safetensors", {"a"});
  const auto error_of = [&](const std::string& json) {
    write_index(json);
    const auto file = SafetensorsFile::open(folder_.string());
    return file.ok() ? "" : file.error().to_string();
  };
  EXPECT_THAT(error_of("[]"), HasSubstr("weight_map"));
  EXPECT_THAT(error_of("{\"weight_map\":"), HasSubstr("is not JSON"));
  EXPECT_THAT(error_of(R"({"weight_map": {"a": 1}})"), HasSubstr("names no file for the tensor \"a\""));
  EXPECT_THAT(error_of(R"({"weight_map": {"a": "../secret.safetensors"}})"), HasSubstr("no plain file name"));
  EXPECT_THAT(error_of(R"({"weight_map": {"a": "/etc/passwd"}})"), HasSubstr("no plain file name"));
  EXPECT_THAT(error_of(R"({"weight_map": {"a": "three.safetensors"}})"),
              HasSubstr("three.safetensors: is missing"));
  EXPECT_THAT(error_of(R"({"weight_map": {"z": "one.safetensors"}})"), HasSubstr("which is not there"));
  EXPECT_THAT(error_of(R"({"weight_map": {"a": "one.safetensors", "x": "two.safetensors"}})"),
              HasSubstr("holds the tensor \"a\", and so does"));
}

TEST_F(SafetensorsTest, AFolderWithoutWeightsSaysSo) {
  EXPECT_THAT(SafetensorsFile::open(folder_.string()).error().to_string(),
              HasSubstr("has neither model.safetensors nor"));
  write("weights.safetensors", {"a"});
  EXPECT_TRUE(SafetensorsFile::open(folder_.string()).ok());
  write("more.safetensors", {"b"});
  EXPECT_THAT(SafetensorsFile::open(folder_.string()).error().to_string(), HasSubstr("2 other"));
}

TEST_F(SafetensorsTest, AnUnfinishedFileDoesNotAppear) {
  SafetensorsWriter writer;
  writer.add_tensor("a", DType::kF32, std::vector<int64_t>{2});
  ASSERT_TRUE(writer.begin(path("out.safetensors")).ok());
  EXPECT_FALSE(writer.finish().ok());
  EXPECT_FALSE(fs::exists(path("out.safetensors")));
}

// What the fuzzer kept: whatever opens can be read whole.
TEST_F(SafetensorsTest, ReplaysTheFuzzersInputs) {
  int replayed = 0;
  for (const auto& item : fs::directory_iterator(TERCET_TEST_DATA "/fuzz/safetensors")) {
    const std::string bytes = *read_file(item.path().string());
    ++replayed;
    const auto file = SafetensorsFile::open_bytes(std::as_bytes(std::span(bytes)), "memory");
    if (!file.ok()) continue;
    for (const SafetensorsTensor& tensor : file->tensors()) {
      EXPECT_EQ(file->find(tensor.name), &tensor) << item.path();
      EXPECT_GE(tensor.data.data(), std::as_bytes(std::span(bytes)).data()) << item.path();
      EXPECT_LE(tensor.data.data() + tensor.data.size(),
                std::as_bytes(std::span(bytes)).data() + bytes.size());
    }
  }
  EXPECT_GT(replayed, 0);
}

}  // namespace
}  // namespace tercet::format
