// Progress of long work, for people, on stderr: one line that rewrites itself on a terminal, with a bar and
// an estimate of the time left; elsewhere one plain line when the work ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace tercet::app {

class Progress {
 public:
  // `total` 0: not known. `unit` of what is counted; "": bytes.
  Progress(std::string label, uint64_t total, std::string unit = "");
  ~Progress();  // leaves the terminal's line clean
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void set_total(uint64_t total) { total_ = total; }
  // Speed and estimate count from the first value given.
  void update(uint64_t done);
  void finish();
  // Takes the line back, for work whose end shows by itself.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  void draw(Clock::time_point now);
  std::string amount(double value) const;

  std::string label_;
  std::string unit_;
  uint64_t total_;
  uint64_t done_ = 0;
  uint64_t first_done_ = 0;
  bool started_ = false;
  bool on_terminal_;
  bool line_open_ = false;
  Clock::time_point start_;
  Clock::time_point last_draw_;
};

// "98.4 MB", decimal units as downloads are counted.
std::string format_bytes(uint64_t bytes);

}  // namespace tercet::app
