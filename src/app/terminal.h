// Lines that a person types, with editing and a history that is kept from one run to the next. One per
// process.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

namespace tercet::app {

// Whether a person sits there.
bool input_is_terminal();
bool output_is_terminal();

class Terminal {
 public:
  // Reads and writes the history in `history_path` ("" for none). Trouble with the file is not an error.
  static Result<Terminal> open(const std::string& history_path);
  Terminal(Terminal&&) noexcept;
  ~Terminal();

  enum class Read { kLine, kInterrupted, kEnd };
  // A line, with those that it continues by a backslash at its end, without the last newline. Ctrl-C:
  // kInterrupted.
  Read read(const std::string& prompt, std::string* input);

 private:
  struct State;
  explicit Terminal(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tercet::app
