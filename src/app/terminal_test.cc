// Types into a pseudo terminal, as a person would.
#include "app/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "app/interrupt.h"
#include "app/test_folder.h"
#include "base/file.h"

namespace tercet::app {
namespace {

using testing::HasSubstr;

constexpr char kCtrlC = '\x03';
constexpr char kCtrlD = '\x04';

// Reads inputs until the end and writes what each was to `results`.
[[noreturn]] void read_inputs(const std::string& history_path, int results) {
  catch_interrupts();
  Result<Terminal> terminal = Terminal::open(history_path);
  if (!terminal) _exit(1);
  for (;;) {
    std::string input;
    const Terminal::Read read = terminal->read("> ", &input);
    std::string result = read == Terminal::Read::kEnd           ? "[end]"
                         : read == Terminal::Read::kInterrupted ? "[interrupted]"
                                                                : "[" + input + "]";
    if (::write(results, result.data(), result.size()) < 0) _exit(1);
    if (read == Terminal::Read::kEnd) _exit(0);
  }
}

class InTheTerminal : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    child_ = ::forkpty(&keyboard_, nullptr, nullptr, nullptr);
    ASSERT_GE(child_, 0);
    if (child_ == 0) read_inputs(history_path(), ends[1]);
    ::close(ends[1]);
    results_ = ends[0];
    wait_for_prompts(1);
  }
  void TearDown() override {
    ::close(keyboard_);
    ::close(results_);
    ::waitpid(child_, nullptr, 0);
  }

  std::string history_path() const { return folder_ / "state/history"; }

  // The prompt shows that the terminal listens; what is typed before would meet another mode.
  void wait_for_prompts(int count) {
    while (num_prompts() < count) {
      char buffer[256];
      const ssize_t got = ::read(keyboard_, buffer, sizeof buffer);
      ASSERT_GT(got, 0);
      shown_.append(buffer, static_cast<size_t>(got));
    }
  }
  int num_prompts() const {
    int count = 0;
    for (size_t at = shown_.find("> "); at != shown_.npos; at = shown_.find("> ", at + 1)) ++count;
    return count;
  }
  void type(const std::string& keys) {
    ASSERT_EQ(::write(keyboard_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  // The next result, which the terminal must give.
  std::string result() {
    std::string text;
    char c = 0;
    while (!text.ends_with(']') && ::read(results_, &c, 1) == 1) text += c;
    return text;
  }

  TestFolder folder_;
  pid_t child_ = -1;
  int keyboard_ = -1;
  int results_ = -1;
  std::string shown_;
};

TEST_F(InTheTerminal, ALineEndsWithEnterAndMayBeEdited) {
  type("hellx\x7fo\r");
  EXPECT_EQ(result(), "[hello]");
}

TEST_F(InTheTerminal, CharactersBeyondAsciiArriveWhole) {
  type("gr\u00fc\u00df \U0001f600\r");
  EXPECT_EQ(result(), "[gr\u00fc\u00df \U0001f600]");
}

TEST_F(InTheTerminal, ABackslashAtTheEndContinuesTheLine) {
  type("one\\\rtwo\\\rthree\r");
  EXPECT_EQ(result(), "[one\ntwo\nthree]");
}

TEST_F(InTheTerminal, CtrlCThrowsTheLineAwayAndCtrlDEnds) {
  type(std::string("half a li") + kCtrlC);
  EXPECT_EQ(result(), "[interrupted]");
  wait_for_prompts(2);
  type("next\r");
  EXPECT_EQ(result(), "[next]");
  wait_for_prompts(3);
  type(std::string(1, kCtrlD));
  EXPECT_EQ(result(), "[end]");
}

TEST_F(InTheTerminal, HistoryIsKeptInAFile) {
  type("remember me\r");
  EXPECT_EQ(result(), "[remember me]");
  wait_for_prompts(2);
  type("\x10\r");  // Ctrl-P: the line before
  EXPECT_EQ(result(), "[remember me]");
  EXPECT_THAT(*read_file(history_path()), HasSubstr("remember\\040me"));
}

}  // namespace
}  // namespace tercet::app
