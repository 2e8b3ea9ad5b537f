// Pulls from tests/servers/hub_server.py, a hub in miniature with faults.
#include "app/hub.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "app/download.h"
#include "app/test_folder.h"
#include "base/file.h"
#include "base/hash.h"

extern char** environ;

namespace tercet::app {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// The server's process; it ends when its standard input closes.
class HubServer {
 public:
  HubServer() {
    int to_server[2];
    int from_server[2];
    if (::pipe(to_server) != 0 || ::pipe(from_server) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to_server[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, from_server[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, to_server[1]);
    std::string script = TERCET_TEST_SERVERS "/hub_server.py";
    std::string python = "python3";
    char* arguments[] = {python.data(), script.data(), nullptr};
    ::posix_spawnp(&child_, "python3", &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(to_server[0]);
    ::close(from_server[1]);
    input_ = to_server[1];
    char line[16] = {};
    if (::read(from_server[0], line, sizeof line - 1) > 0) port_ = std::atoi(line);
    ::close(from_server[0]);
  }
  ~HubServer() {
    ::close(input_);
    if (child_ > 0) ::waitpid(child_, nullptr, 0);
  }
  HubServer(const HubServer&) = delete;
  HubServer& operator=(const HubServer&) = delete;
  std::string address() const { return fmt::format("http://127.0.0.1:{}", port_); }
  std::string log() const { return *http_get(address() + "/log", "", 1 << 20); }

 private:
  pid_t child_ = 0;
  int input_ = -1;
  int port_ = 0;
};

// What the server's body() makes.
std::string body(const std::string& file) {
  std::string contents;
  for (int i = 0; i < 5000; ++i) {
    const Sha256Digest digest = sha256(file + std::to_string(i));
    contents.append(digest.begin(), digest.end());
  }
  return contents;
}

class Hub : public testing::Test {
 protected:
  Result<std::string> pull(const std::string& name, const std::string& token = "") {
    const auto parsed = parse_hub_name(name);
    if (!parsed) return parsed.error();
    return pull_from_hub(*parsed, {.endpoint = server_.address(),
                                   .token = token,
                                   .models_folder = models_.path(),
                                   .retry_delay = std::chrono::milliseconds(1)});
  }
  void expect_pulled(const std::string& name, const std::string& path, const std::string& token = "") {
    const auto pulled = pull(name, token);
    ASSERT_TRUE(pulled.ok()) << pulled.error().to_string();
    EXPECT_EQ(*pulled, models_ / path);
    EXPECT_EQ(*read_file(*pulled), body(std::filesystem::path(path).filename()));
    EXPECT_FALSE(std::filesystem::exists(*pulled + ".part"));
    EXPECT_EQ(*find_pulled(*parse_hub_name(name), models_.path()), *pulled);
  }
  void expect_error(const std::string& name, const std::string& message) {
    const auto pulled = pull(name);
    ASSERT_FALSE(pulled.ok());
    EXPECT_THAT(pulled.error().to_string(), HasSubstr(message));
  }

  HubServer server_;
  TestFolder models_;
};

TEST_F(Hub, FileMayBeLeftOutWhenThereIsOne) { expect_pulled("hf:o/plain", "hf/o/plain/m.gguf"); }

TEST_F(Hub, FileMayBeNamed) { expect_pulled("hf:o/many:m-Q8_0.gguf", "hf/o/many/m-Q8_0.gguf"); }

TEST_F(Hub, FileMayBeNamedByItsType) { expect_pulled("hf:o/many:q8_0", "hf/o/many/m-Q8_0.gguf"); }

TEST_F(Hub, Q4KMIsPreferredAmongSeveral) { expect_pulled("hf:o/many", "hf/o/many/m-Q4_K_M.gguf"); }

TEST_F(Hub, AllPartsOfASplitFileAreFetched) {
  expect_pulled("hf:o/split", "hf/o/split/m-00001-of-00002.gguf");
  EXPECT_EQ(*read_file(models_ / "hf/o/split/m-00002-of-00002.gguf"), body("m-00002-of-00002.gguf"));
}

TEST_F(Hub, DroppedConnectionsResumeWhereTheyBroke) {
  expect_pulled("hf:o/dropping", "hf/o/dropping/m.gguf");
  EXPECT_THAT(server_.log(), AllOf(HasSubstr("/blob/dropping/m.gguf bytes=40000-"),
                                   HasSubstr("/blob/dropping/m.gguf bytes=80000-"),
                                   HasSubstr("/blob/dropping/m.gguf bytes=120000-")));
}

TEST_F(Hub, APartOfAnEarlierRunIsContinued) {
  std::filesystem::create_directories(models_ / "hf/o/plain");
  std::ofstream(models_ / "hf/o/plain/m.gguf.part") << body("m.gguf").substr(0, 1000);
  expect_pulled("hf:o/plain", "hf/o/plain/m.gguf");
  EXPECT_THAT(server_.log(), HasSubstr("/blob/plain/m.gguf bytes=1000-"));
}

TEST_F(Hub, ACompletePartIsVerifiedAndTaken) {
  std::filesystem::create_directories(models_ / "hf/o/plain");
  std::ofstream(models_ / "hf/o/plain/m.gguf.part") << body("m.gguf");
  expect_pulled("hf:o/plain", "hf/o/plain/m.gguf");
}

TEST_F(Hub, APartThatIsTooLongIsFetchedAgain) {
  std::filesystem::create_directories(models_ / "hf/o/plain");
  std::ofstream(models_ / "hf/o/plain/m.gguf.part") << body("m.gguf") << "more";
  expect_pulled("hf:o/plain", "hf/o/plain/m.gguf");
}

TEST_F(Hub, ServersWithoutRangesStartAgain) { expect_pulled("hf:o/rangeless", "hf/o/rangeless/m.gguf"); }

TEST_F(Hub, ServerErrorsAreRetried) { expect_pulled("hf:o/flaky", "hf/o/flaky/m.gguf"); }

TEST_F(Hub, RetriesEnd) { expect_error("hf:o/stubborn", "stubborn/resolve/main/m.gguf: "); }

TEST_F(Hub, ADamagedPartIsFoundAndRemoved) {
  std::filesystem::create_directories(models_ / "hf/o/plain");
  std::ofstream(models_ / "hf/o/plain/m.gguf.part") << "damaged";
  expect_error("hf:o/plain", "has SHA-256 ");
  expect_pulled("hf:o/plain", "hf/o/plain/m.gguf");
}

TEST_F(Hub, AWrongHashIsRefused) {
  expect_error("hf:o/wrong", fmt::format("expected {}", to_hex(sha256("other"))));
  EXPECT_FALSE(std::filesystem::exists(models_ / "hf/o/wrong/m.gguf"));
  EXPECT_FALSE(std::filesystem::exists(models_ / "hf/o/wrong/m.gguf.part"));
}

TEST_F(Hub, AFileWithoutAHashIsTakenAndSaid) {
  testing::internal::CaptureStderr();
  expect_pulled("hf:o/unhashed", "hf/o/unhashed/m.gguf");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("gave no SHA-256"));
}

TEST_F(Hub, ErrorsSayWhatToDo) {
  expect_error("hf:o/private", "set HF_TOKEN");
  expect_error("hf:o/absent", "no such file or repository (404)");
  expect_error("hf:o/empty", "hf:o/empty: the repository has no GGUF file");
  expect_error("hf:o/many:q2_k",
               "hf:o/many: none of the repository's GGUF files fit q2_k; name one of: m-Q4_K_M.gguf, "
               "m-Q8_0.gguf");
  expect_error("hf:o/garbage", "is this the endpoint of a model hub?");
}

TEST_F(Hub, TheTokenGoesToTheHubOnly) {
  expect_pulled("hf:o/private", "hf/o/private/m.gguf", "secret");
  EXPECT_THAT(server_.log(), AllOf(HasSubstr("/o/private/resolve/main/m.gguf - Bearer secret"),
                                   HasSubstr("/blob/private/m.gguf - -")));
}

TEST_F(Hub, NamesThatLeaveTheFolderAreIgnored) {
  expect_error("hf:o/hostile", "no GGUF file");
  EXPECT_TRUE(std::filesystem::is_empty(models_.path()));
}

TEST(HubName, IsOwnerRepoAndFile) {
  const auto name = parse_hub_name("hf:Owner-1/re.po_2:sub/m-Q8_0.gguf");
  ASSERT_TRUE(name.ok());
  EXPECT_EQ(name->owner, "Owner-1");
  EXPECT_EQ(name->repo, "re.po_2");
  EXPECT_EQ(name->file, "sub/m-Q8_0.gguf");
}

TEST(HubName, OtherFormsAreErrors) {
  for (const char* name : {"hf:", "hf:o", "hf:o/", "hf:/r", "hf:o/r/s", "hf:../r", "hf:o/..", "hf:o/r:",
                           "hf:o/r:../f", "hf:o/r:/f", "hf:o/r:a//b", "hf:o/r?x", "hf:o/r:f#", "o/r"}) {
    EXPECT_FALSE(parse_hub_name(name).ok()) << name;
  }
}

TEST(HubFiles, WithAPartMissingAreAnError) {
  const auto chosen = choose_files({"m-00001-of-00003.gguf", "m-00003-of-00003.gguf"}, "");
  ASSERT_FALSE(chosen.ok());
  EXPECT_THAT(chosen.error().to_string(), HasSubstr("has 2 of 3 parts"));
}

}  // namespace
}  // namespace tercet::app
