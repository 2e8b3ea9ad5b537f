// For tests: the golden models of tests/data/arch, and folders with one of their configs.
#pragma once

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/check.h"
#include "format/safetensors.h"

namespace tercet::model {

struct GoldenLogits {
  std::vector<int32_t> ids_a, ids_b, greedy_a;
  std::vector<float> logits_a, logits_b;  // [ids, vocab]
};

inline std::string golden_path(const std::string& family) {
  return std::string(TERCET_TEST_DATA) + "/arch/" + family;
}

inline GoldenLogits golden_logits(const std::string& family) {
  const auto file = format::SafetensorsFile::open(golden_path(family) + "/golden.safetensors");
  TERCET_CHECK(file.ok());
  const auto ids = [&](const char* name) {
    const auto bytes = file->find(name)->data;
    std::vector<int64_t> wide(bytes.size() / sizeof(int64_t));
    std::memcpy(wide.data(), bytes.data(), bytes.size());
    return std::vector<int32_t>(wide.begin(), wide.end());
  };
  const auto logits = [&](const char* name) {
    const auto bytes = file->find(name)->data;
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  };
  return {ids("ids_a"), ids("ids_b"), ids("greedy_a"), logits("logits_a"), logits("logits_b")};
}

// A folder of its own with the family's weights and the named config.
class GoldenFolder {
 public:
  GoldenFolder(const std::string& family, const std::string& config) {
    namespace fs = std::filesystem;
    // Tests run side by side.
    std::string unique = (fs::temp_directory_path() / "tercet_golden_XXXXXX").string();
    TERCET_CHECK(::mkdtemp(unique.data()) != nullptr);
    path_ = unique;
    fs::create_symlink(golden_path(family) + "/" + config, path_ / "config.json");
    fs::create_symlink(golden_path(family) + "/model.safetensors", path_ / "model.safetensors");
  }
  ~GoldenFolder() { std::filesystem::remove_all(path_); }
  GoldenFolder(const GoldenFolder&) = delete;
  GoldenFolder& operator=(const GoldenFolder&) = delete;

  std::string path() const { return path_.string(); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace tercet::model
