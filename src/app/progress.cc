#include "app/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace tercet::app {

Progress::Progress(std::string label, uint64_t total_bytes)
    : label_(std::move(label)),
      total_(total_bytes),
      on_terminal_(::isatty(STDERR_FILENO) == 1),
      start_(Clock::now()) {}

Progress::~Progress() {
  if (line_open_) fmt::print(stderr, "\n");
}

void Progress::update(uint64_t done_bytes) {
  const auto now = Clock::now();
  if (!started_) {
    started_ = true;
    first_done_ = done_bytes;
    start_ = now;
  }
  done_ = done_bytes;
  if (on_terminal_ && now - last_draw_ >= std::chrono::milliseconds(100)) draw(now);
}

void Progress::draw(Clock::time_point now) {
  last_draw_ = now;
  line_open_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double speed = seconds > 0 ? static_cast<double>(done_ - first_done_) / seconds : 0;
  std::string line = fmt::format("{}: {}", label_, format_bytes(done_));
  if (total_ > 0) line += fmt::format(" of {}", format_bytes(total_));
  if (speed > 0) line += fmt::format(", {}/s", format_bytes(static_cast<uint64_t>(speed)));
  if (speed > 0 && total_ > done_) {
    line += fmt::format(", {:.0f} s left", static_cast<double>(total_ - done_) / speed);
  }
  fmt::print(stderr, "\r{}\x1b[K", line);
}

void Progress::finish() {
  if (on_terminal_) draw(Clock::now());
  if (!on_terminal_) fmt::print(stderr, "{}: {}\n", label_, format_bytes(done_));
  if (line_open_) fmt::print(stderr, "\n");
  line_open_ = false;
}

void Progress::clear() {
  if (line_open_) fmt::print(stderr, "\r\x1b[K");
  line_open_ = false;
}

std::string format_bytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(kUnits)) value /= 1000, ++unit;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace tercet::app
