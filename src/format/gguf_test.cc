#include "format/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/sha.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "format/gguf_writer.h"

namespace tercet::format {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

const std::string kData = TERCET_TEST_DATA;

class GgufTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string("tercet_gguf_") + info->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  fs::path folder_;
};

std::span<const std::byte> bytes_of(std::span<const float> values) { return std::as_bytes(values); }

// A metadata item as the dumps spell it: 64-bit integers as decimal strings, floats by their bits.
json dump_item(const GgufEntry& entry, size_t i) {
  const auto float_bits = [](auto bits) { return fmt::format("{:0{}x}", bits, 2 * sizeof bits); };
  switch (entry.item_type) {
    case GgufType::kString: return decode_strings(entry)[i];
    case GgufType::kBool: return decode_ints(entry)[i] != 0;
    case GgufType::kFloat32:
      return float_bits(std::bit_cast<uint32_t>(static_cast<float>(decode_floats(entry)[i])));
    case GgufType::kFloat64: return float_bits(std::bit_cast<uint64_t>(decode_floats(entry)[i]));
    case GgufType::kUint64: return std::to_string(static_cast<uint64_t>(decode_ints(entry)[i]));
    case GgufType::kInt64: return std::to_string(decode_ints(entry)[i]);
    default: return decode_ints(entry)[i];
  }
}

json dump_metadata(const GgufFile& file) {
  json dump = json::array();
  for (const GgufEntry& entry : file.metadata().entries()) {
    json value = json::array();
    for (size_t i = 0; i < entry.count; ++i) value.push_back(dump_item(entry, i));
    const std::string type(gguf_type_name(entry.item_type));
    if (entry.is_array) {
      dump.push_back({{"key", entry.key}, {"type", "array"}, {"item_type", type}, {"value", value}});
    } else {
      dump.push_back({{"key", entry.key}, {"type", type}, {"value", value[0]}});
    }
  }
  return dump;
}

// Replaces {"value": 0.5, "bits": "3f000000"} by its bits.
void keep_bits(json& value) {
  if (value.is_object() && value.contains("bits")) value = json(value["bits"]);
  if (value.is_structured())
    for (auto& item : value) keep_bits(item);
}

std::string sha256(std::span<const std::byte> data) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(data.data()), data.size(), digest);
  std::string hex;
  for (const unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

void expect_equals_dump(const std::string& name) {
  SCOPED_TRACE(name);
  auto opened = GgufFile::open(kData + "/gguf/" + name + ".gguf");
  ASSERT_TRUE(opened.ok()) << opened.error().to_string();
  const GgufFile& file = *opened;
  json expected = json::parse(std::ifstream(kData + "/gguf/" + name + ".json"));
  keep_bits(expected["metadata"]);
  EXPECT_EQ(file.version(), expected["version"]);
  EXPECT_EQ(file.file_bytes(), expected["file_bytes"]);
  EXPECT_EQ(dump_metadata(file), expected["metadata"]);
  ASSERT_EQ(file.tensors().size(), expected["tensors"].size());
  for (size_t i = 0; i < file.tensors().size(); ++i) {
    const GgufTensor& tensor = file.tensors()[i];
    const json& wanted = expected["tensors"][i];
    EXPECT_EQ(tensor.name, wanted["name"]);
    EXPECT_EQ(dtype_name(tensor.type), wanted["type"]);
    EXPECT_EQ(json(tensor.shape), wanted["ne"]) << tensor.name;
    EXPECT_EQ(tensor.data.size(), wanted["nbytes"]) << tensor.name;
    EXPECT_EQ(sha256(tensor.data), wanted["sha256"]) << tensor.name;
  }
}

TEST_F(GgufTest, ReadsEveryValueAndTensorTypeAsTheDumpsSay) {
  for (const char* name : {"tiny-mixed", "tiny-align64", "tiny-v2"}) expect_equals_dump(name);
}

TEST_F(GgufTest, RefusesNestedArraysByName) {
  const auto file = GgufFile::open(kData + "/gguf/tiny-nested-array.gguf");
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(file.error().to_string(), HasSubstr("\"a.nested\" is an array of arrays"));
}

TEST_F(GgufTest, GettersCheckTypes) {
  const auto opened = GgufFile::open(kData + "/gguf/tiny-mixed.gguf");
  ASSERT_TRUE(opened.ok());
  const GgufFile& file = *opened;
  EXPECT_EQ(*file.metadata().get_uint("m.uint8"), 255u);
  EXPECT_EQ(*file.metadata().get_uint("m.uint64"), UINT64_MAX);
  EXPECT_EQ(*file.metadata().get_int("m.int64"), INT64_MIN);
  EXPECT_FALSE(file.metadata().get_int("m.uint64").ok());
  EXPECT_THAT(file.metadata().get_uint("m.int8").error().to_string(), HasSubstr("\"m.int8\" is -128"));
  EXPECT_EQ(*file.metadata().get_float("m.float64"), std::bit_cast<double>(0x4005bf0a8b145769));
  EXPECT_TRUE(*file.metadata().get_bool("m.bool_true"));
  EXPECT_EQ(*file.metadata().get_string("m.string"), "plain ascii");
  EXPECT_THAT(*file.metadata().get_ints("a.int8"), ElementsAre(-128, -1, 0, 127));
  EXPECT_THAT(*file.metadata().get_ints("m.uint8"), ElementsAre(255));
  EXPECT_THAT(*file.metadata().get_strings("a.string"),
              ElementsAre("", "a", "\u2581hello", "<0x0A>", "longer string with spaces"));
  EXPECT_THAT(file.metadata().get_string("m.uint8").error().to_string(),
              HasSubstr("\"m.uint8\" is uint8; a string is expected"));
  EXPECT_THAT(file.metadata().get_uint("a.uint8").error().to_string(), HasSubstr("an array of 5 uint8"));
  EXPECT_EQ(file.metadata().get_uint("absent").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(*file.metadata().get_uint_or("absent", 3), 3u);
  EXPECT_FALSE(file.metadata().get_uint_or("m.string", 3).ok());
  EXPECT_EQ(file.find_tensor("absent"), nullptr);
  EXPECT_EQ(file.find_tensor("t.f32_3d")->rows(), 6);
}

struct HostileCase {
  const char* file;
  const char* error;  // part of the message; nullptr: a reader accepts the bytes
};

constexpr HostileCase kHostileFiles[] = {
    {"valid_llama", nullptr},
    {"valid_nan_row", nullptr},
    {"empty", "the file ends inside the magic number"},
    {"three_bytes", "the file ends inside the magic number"},
    {"bad_magic", "not a GGUF file"},
    {"version_0", "has GGUF version 0"},
    {"version_1", "has GGUF version 1"},
    {"version_99", "has GGUF version 99"},
    {"big_endian_v3", "big-endian"},
    {"trunc_header", "the file ends inside the tensor count"},
    {"trunc_kv", "the file ends inside the value of \"tokenizer.ggml.tokens\""},
    {"trunc_tensor_info", "the file ends inside"},
    {"trunc_before_data", "of the data, which has 0"},
    {"trunc_data", "is the download complete?"},
    {"tensor_count_2e60", "inside the list of tensors: it claims 1152921504606846976 items"},
    {"tensor_count_neg", "inside the list of tensors: it claims 18446744073709551615 items"},
    {"kv_count_2e60", "inside the metadata: it claims 1152921504606846976 items"},
    {"key_len_2e48", "it claims 281474976710656 bytes"},
    {"key_len_max", "it claims 18446744073709551615 bytes"},
    {"string_past_eof", "it claims 1000000 bytes"},
    {"array_len_2e61", "it claims 2305843009213693952 items"},
    {"string_array_len_2e40", "it claims 1099511627776 items"},
    {"value_type_99", "is 99; types go from 0 to 12"},
    {"array_item_type_99", "is 99; types go from 0 to 12"},
    {"array_nested_1000", "is an array of arrays"},
    {"array_nested_exponential", "is an array of arrays"},
    {"bool_7", "is a bool with the byte"},
    {"duplicate_key", "\"llama.context_length\" appears twice"},
    {"key_invalid_utf8", nullptr},
    {"key_empty", "has an empty key"},
    {"n_dims_0", "has 0 dimensions"},
    {"n_dims_5", "has 5 dimensions"},
    {"n_dims_2e31", "has 2147483648 dimensions"},
    {"dim_0", "has 0 as dimension 1"},
    {"dim_negative", "has -8 as dimension"},
    {"dims_overflow", "more than 2^63 bytes"},
    {"dims_overflow_int64max", "more than 2^63 bytes"},
    {"dims_bytes_overflow", "more than 2^63 bytes"},
    {"shape_mismatch", nullptr},
    {"offset_past_eof", "at offset 10000000 of the data"},
    {"offset_wraps", "at offset 18446744073709551584 of the data"},
    {"offset_misaligned", "not a multiple of the alignment 32"},
    {"tensors_overlap", "overlap"},
    {"duplicate_tensor", "two tensors are named \"blk.0.attn_q.weight\""},
    {"tensor_name_long", nullptr},
    {"alignment_0", "general.alignment is 0"},
    {"alignment_3", "general.alignment is 3"},
    {"alignment_1073741824", "of the data, which has 0"},
    {"alignment_string", "\"general.alignment\" is string"},
    {"tensor_type_77", "type id 77"},
    {"tensor_type_4", "type id 4"},
    {"tensor_type_5", "type id 5"},
    {"tensor_type_31", "type id 31"},
    {"row_not_block_multiple", "has rows of 8 elements; Q4_0 holds 32 in a block"},
    {"hp_block_count_2147483648", nullptr},
    {"hp_block_count_0", nullptr},
    {"hp_embedding_length_0", nullptr},
    {"hp_attention_head_count_0", nullptr},
    {"hp_attention_head_count_kv_0", nullptr},
    {"hp_attention_head_count_3", nullptr},
    {"hp_feed_forward_length_4294967295", nullptr},
    {"hp_rope_dimension_count_7", nullptr},
    {"hp_block_count_string", nullptr},
    {"hp_eps_nan", nullptr},
    {"missing_tensor", nullptr},
    {"missing_architecture", nullptr},
    {"unknown_architecture", nullptr},
    {"bos_out_of_range", nullptr},
    {"scores_too_short", nullptr},
    {"byte_token_bad", nullptr},
};

TEST_F(GgufTest, HostileFilesEndInAClearError) {
  for (const auto& [name, error] : kHostileFiles) {
    const std::string path = kData + "/hostile/" + name + ".gguf";
    const auto file = GgufFile::open(path);
    if (error == nullptr) {
      EXPECT_TRUE(file.ok()) << name << ": " << file.error().to_string();
      continue;
    }
    ASSERT_FALSE(file.ok()) << name;
    EXPECT_THAT(file.error().message, HasSubstr(error)) << name;
    EXPECT_EQ(file.error().where, path);
  }
}

TEST_F(GgufTest, HostileTableNamesEveryFile) {
  for (const auto& item : fs::directory_iterator(kData + "/hostile")) {
    if (item.path().extension() != ".gguf") continue;
    const bool listed = std::any_of(std::begin(kHostileFiles), std::end(kHostileFiles),
                                    [&](const HostileCase& c) { return item.path().stem() == c.file; });
    EXPECT_TRUE(listed) << item.path();
  }
}

// A file cut anywhere is an error, never a crash; only the padding at its end may go.
TEST_F(GgufTest, EveryTruncationIsAnError) {
  const std::string whole = *read_file(kData + "/hostile/valid_llama.gguf");
  const auto full = GgufFile::open_bytes(std::as_bytes(std::span(whole)), "memory");
  ASSERT_TRUE(full.ok());
  const GgufTensor& last = full->tensors().back();
  const auto data_end =
      static_cast<size_t>(reinterpret_cast<const char*>(last.data.data() + last.data.size()) - whole.data());
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    EXPECT_EQ(GgufFile::open_bytes(std::as_bytes(std::span(cut)), "memory").ok(), size >= data_end) << size;
  }
}

TEST_F(GgufTest, FuzzSeedsFailOrCanBeReadWhole) {
  for (const auto& item : fs::directory_iterator(kData + "/fuzz/gguf")) {
    const std::string bytes = *read_file(item.path().string());
    const auto file = GgufFile::open_bytes(std::as_bytes(std::span(bytes)), "memory");
    if (!file.ok()) continue;
    EXPECT_EQ(dump_metadata(*file).size(), file->metadata().entries().size());
    for (const GgufTensor& tensor : file->tensors()) EXPECT_EQ(sha256(tensor.data).size(), 64u);
  }
}

TEST_F(GgufTest, WriterAndReaderAgree) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};
  const std::vector<float> b = {-7};
  const std::vector<std::string> tokens = {"", "x", "\xff"};
  GgufWriter writer(64);
  writer.set("general.architecture", "tinytest");
  writer.set("n", uint32_t{7});
  writer.set("tokens", tokens);
  writer.set("scores", std::span<const float>(a));
  writer.add_tensor("a", DType::kF32, std::vector<int64_t>{3, 2});
  writer.add_tensor("b", DType::kF32, std::vector<int64_t>{1});
  ASSERT_TRUE(writer.begin(path("out.gguf")).ok());
  ASSERT_TRUE(writer.write_tensor(bytes_of(a).first(4)).ok());
  ASSERT_TRUE(writer.write_tensor(bytes_of(a).subspan(4)).ok());
  EXPECT_FALSE(writer.finish().ok());
  EXPECT_FALSE(fs::exists(path("out.gguf")));
  ASSERT_TRUE(writer.write_tensor(bytes_of(b)).ok());
  ASSERT_TRUE(writer.finish().ok());

  const auto file = GgufFile::open(path("out.gguf"));
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  EXPECT_EQ(*file->metadata().get_uint("n"), 7u);
  EXPECT_THAT(*file->metadata().get_strings("tokens"), ElementsAre("", "x", "\xff"));
  EXPECT_THAT(*file->metadata().get_floats("scores"), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(0, std::memcmp(file->find_tensor("a")->data.data(), a.data(), 24));
  EXPECT_EQ(0, std::memcmp(file->find_tensor("b")->data.data(), b.data(), 4));
}

TEST_F(GgufTest, AnUnfinishedWriterLeavesNothing) {
  {
    GgufWriter writer;
    writer.add_tensor("a", DType::kF32, std::vector<int64_t>{1});
    ASSERT_TRUE(writer.begin(path("out.gguf")).ok());
  }
  EXPECT_TRUE(fs::is_empty(folder_));
}

// A split model of three shards with one tensor each, t1 to t3, holding its number.
class SplitGgufTest : public GgufTest {
 protected:
  void SetUp() override {
    GgufTest::SetUp();
    for (int shard = 1; shard <= 3; ++shard) write_shard(shard);
  }

  void write_shard(int shard) {
    GgufWriter writer;
    if (shard == 1) writer.set("general.architecture", "tinytest");
    writer.set("split.no", static_cast<uint16_t>(shard - 1));
    writer.set("split.count", uint16_t{3});
    writer.set("split.tensors.count", int32_t{3});
    writer.add_tensor(fmt::format("t{}", shard), DType::kF32, std::vector<int64_t>{1});
    const std::vector<float> data = {static_cast<float>(shard)};
    ASSERT_TRUE(writer.begin(shard_path(shard)).ok());
    ASSERT_TRUE(writer.write_tensor(bytes_of(data)).ok());
    ASSERT_TRUE(writer.finish().ok());
  }

  std::string shard_path(int shard) const { return path(fmt::format("m-{:05}-of-00003.gguf", shard)); }

  void expect_error(const std::string& path, const std::string& message) {
    const auto file = GgufFile::open(path);
    ASSERT_FALSE(file.ok());
    EXPECT_THAT(file.error().to_string(), HasSubstr(message));
  }
};

TEST_F(SplitGgufTest, TheFirstShardOpensAll) {
  const auto file = GgufFile::open(shard_path(1));
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  EXPECT_EQ(file->num_shards(), 3);
  ASSERT_EQ(file->tensors().size(), 3u);
  for (int i = 1; i <= 3; ++i) {
    float value;
    std::memcpy(&value, file->find_tensor(fmt::format("t{}", i))->data.data(), sizeof value);
    EXPECT_EQ(value, static_cast<float>(i));
  }
}

TEST_F(SplitGgufTest, AnotherShardNamesTheFirst) {
  expect_error(shard_path(2), "is shard 2 of 3; open the first one, m-00001-of-00003.gguf");
}

TEST_F(SplitGgufTest, AMissingShardIsNamed) {
  fs::remove(shard_path(2));
  expect_error(shard_path(1), "m-00002-of-00003.gguf: shard 2 of 3 is missing");
}

TEST_F(SplitGgufTest, ShardsOutOfOrderAreTold) {
  fs::rename(shard_path(2), path("swap"));
  fs::rename(shard_path(3), shard_path(2));
  fs::rename(path("swap"), shard_path(3));
  expect_error(
      shard_path(1),
      "m-00002-of-00003.gguf: holds shard 3 of 3, and its name says 2 of 3: the shards are out of order");
}

TEST_F(SplitGgufTest, TheFirstAndTheSecondShardSwappedAreTold) {
  fs::rename(shard_path(2), path("swap"));
  fs::rename(shard_path(1), shard_path(2));
  fs::rename(path("swap"), shard_path(1));
  expect_error(shard_path(1), "holds shard 2 of 3, and its name says 1: the shards are out of order");
  expect_error(shard_path(2), "holds shard 1 of 3, and its name says 2: the shards are out of order");
}

TEST_F(SplitGgufTest, ARenamedFirstShardSaysHowToNameIt) {
  fs::rename(shard_path(1), path("model.gguf"));
  expect_error(path("model.gguf"), "is shard 1 of 3, and its name does not end in -00001-of-00003.gguf");
}

TEST_F(SplitGgufTest, ConcatenatedShardsAreTold) {
  std::string joined;
  for (int shard = 1; shard <= 3; ++shard) joined += *read_file(shard_path(shard));
  for (const std::string& name : {path("joined.gguf"), shard_path(1)}) {
    ASSERT_TRUE(write_file(name, joined).ok());
    expect_error(name, "a second GGUF file follows the first");
  }
}

TEST_F(SplitGgufTest, AForeignFileAmongTheShardsIsTold) {
  fs::copy_file(kData + "/hostile/valid_llama.gguf", shard_path(3), fs::copy_options::overwrite_existing);
  expect_error(shard_path(1), "m-00003-of-00003.gguf: has no split.no, so it is no shard of");
}

TEST_F(SplitGgufTest, ATensorInTwoShardsIsTold) {
  GgufWriter writer;
  writer.set("split.no", uint16_t{1});
  writer.set("split.count", uint16_t{3});
  writer.add_tensor("t1", DType::kF32, std::vector<int64_t>{1});
  const std::vector<float> data = {0};
  ASSERT_TRUE(writer.begin(shard_path(2)).ok());
  ASSERT_TRUE(writer.write_tensor(bytes_of(data)).ok());
  ASSERT_TRUE(writer.finish().ok());
  expect_error(shard_path(1), "two tensors are named \"t1\"");
}

TEST_F(SplitGgufTest, ATensorTooFewIsTold) {
  GgufWriter writer;
  writer.set("split.no", uint16_t{1});
  writer.set("split.count", uint16_t{3});
  ASSERT_TRUE(writer.begin(shard_path(2)).ok());
  ASSERT_TRUE(writer.finish().ok());
  expect_error(shard_path(1), "split.tensors.count is 3, and the 3 shards hold 2 tensors");
}

}  // namespace
}  // namespace tercet::format
