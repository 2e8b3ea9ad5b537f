#include "app/terminal.h"

#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstring>
#include <cwchar>
#include <filesystem>
#include <string_view>
#include <utility>

#include "app/interrupt.h"

namespace tercet::app {
namespace {

constexpr int kHistoryLength = 1000;

// libedit converts by the locale; a bare system's "C" knows no characters but ASCII.
void use_utf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
}

// Waits for a byte. False: Ctrl-C came. A signal can come just before the call that would wait, or go to
// another thread, so the flag is looked at again every now and then.
bool wait_for_byte() {
  for (;;) {
    if (take_interrupt()) return false;
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (::poll(&input, 1, 100) > 0) return true;
  }
}

// libedit's own reader waits on after a signal; this one gives up with EINTR, so that Ctrl-C reaches the
// caller.
int read_character(EditLine*, wchar_t* character) {
  std::mbstate_t state{};
  for (;;) {
    if (!wait_for_byte()) {
      errno = EINTR;
      return -1;
    }
    char byte = 0;
    const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return static_cast<int>(got);
    const size_t length = std::mbrtowc(character, &byte, 1, &state);
    if (length == static_cast<size_t>(-1)) state = {};  // no UTF-8: skip it
    if (length == static_cast<size_t>(-1) || length == static_cast<size_t>(-2)) continue;
    return 1;
  }
}

}  // namespace

struct Terminal::State {
  EditLine* editor = nullptr;
  History* history = nullptr;
  std::string history_path;
  std::string prompt;

  ~State() {
    if (editor != nullptr) el_end(editor);
    if (history != nullptr) history_end(history);
  }
};

bool input_is_terminal() { return ::isatty(STDIN_FILENO) == 1; }
bool output_is_terminal() { return ::isatty(STDOUT_FILENO) == 1; }

Terminal::Terminal(std::unique_ptr<State> state) : state_(std::move(state)) {}
Terminal::Terminal(Terminal&&) noexcept = default;
Terminal::~Terminal() = default;

Result<Terminal> Terminal::open(const std::string& history_path) {
  use_utf8();
  auto state = std::make_unique<State>();
  state->editor = el_init("tercet", stdin, stdout, stderr);
  state->history = history_init();
  if (state->editor == nullptr || state->history == nullptr) {
    return Error{ErrorCode::kInternal, "cannot set up line editing", "terminal"};
  }
  const auto prompt = [](EditLine* editor) {
    State* owner = nullptr;
    el_get(editor, EL_CLIENTDATA, &owner);
    return owner->prompt.data();
  };
  el_set(state->editor, EL_CLIENTDATA, state.get());
  el_set(state->editor, EL_PROMPT, static_cast<char* (*)(EditLine*)>(prompt));
  el_set(state->editor, EL_EDITOR, "emacs");
  el_set(state->editor, EL_SIGNAL, 0);
  el_set(state->editor, EL_GETCFN, read_character);
  el_set(state->editor, EL_HIST, history, state->history);
  el_source(state->editor, nullptr);
  HistEvent event{};
  history(state->history, &event, H_SETSIZE, kHistoryLength);
  history(state->history, &event, H_SETUNIQUE, 1);
  state->history_path = history_path;
  if (!history_path.empty()) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(history_path).parent_path(), ignored);
    history(state->history, &event, H_LOAD, history_path.c_str());
  }
  return Terminal(std::move(state));
}

Terminal::Read Terminal::read(const std::string& prompt, std::string* input) {
  input->clear();
  state_->prompt = prompt;
  for (;;) {
    int length = 0;
    errno = 0;
    // Raw mode before the prompt shows: libedit by itself switches after, and a Ctrl-D typed in between would
    // be lost.
    el_set(state_->editor, EL_PREP_TERM, 1);
    const char* line = el_gets(state_->editor, &length);
    if (line == nullptr || length <= 0) return errno == EINTR ? Read::kInterrupted : Read::kEnd;
    std::string_view text(line, static_cast<size_t>(length));
    if (text.ends_with('\n')) text.remove_suffix(1);
    const bool goes_on = text.ends_with('\\');
    if (goes_on) text.remove_suffix(1);
    *input += text;
    if (!goes_on) break;
    *input += '\n';
    state_->prompt = std::string(prompt.size(), '.') + " ";
  }
  if (!input->empty()) {
    HistEvent event{};
    history(state_->history, &event, H_ENTER, input->c_str());
    if (!state_->history_path.empty()) history(state_->history, &event, H_SAVE, state_->history_path.c_str());
  }
  return Read::kLine;
}

}  // namespace tercet::app
