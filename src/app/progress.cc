#include "app/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tercet::app {

namespace {

constexpr size_t kBarWidth = 20;

}  // namespace

Progress::Progress(std::string label, uint64_t total, std::string unit)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      total_(total),
      on_terminal_(::isatty(STDERR_FILENO) == 1),
      start_(Clock::now()) {}

Progress::~Progress() {
  if (line_open_) fmt::print(stderr, "\n");
}

void Progress::update(uint64_t done) {
  const auto now = Clock::now();
  if (!started_) {
    started_ = true;
    first_done_ = done;
    start_ = now;
  }
  done_ = done;
  if (on_terminal_ && now - last_draw_ >= std::chrono::milliseconds(100)) draw(now);
}

void Progress::draw(Clock::time_point now) {
  last_draw_ = now;
  line_open_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double speed = seconds > 0 ? static_cast<double>(done_ - first_done_) / seconds : 0;
  std::string line = label_ + ": ";
  if (total_ > 0) {
    const size_t filled = kBarWidth * std::min(done_, total_) / total_;
    line += fmt::format("[{}{}] ", std::string(filled, '#'), std::string(kBarWidth - filled, ' '));
  }
  if (total_ > 0)
    line +=
        fmt::format("{} of {}", unit_.empty() ? amount(static_cast<double>(done_)) : std::to_string(done_),
                    amount(static_cast<double>(total_)));
  else
    line += amount(static_cast<double>(done_));
  if (speed > 0) line += ", " + amount(speed) + "/s";
  if (speed > 0 && total_ > done_) {
    line += fmt::format(", {:.0f} s left", static_cast<double>(total_ - done_) / speed);
  }
  fmt::print(stderr, "\r{}\x1b[K", line);
}

void Progress::finish() {
  if (on_terminal_) draw(Clock::now());
  if (!on_terminal_) fmt::print(stderr, "{}: {}\n", label_, amount(static_cast<double>(done_)));
  if (line_open_) fmt::print(stderr, "\n");
  line_open_ = false;
}

void Progress::clear() {
  if (line_open_) fmt::print(stderr, "\r\x1b[K");
  line_open_ = false;
}

std::string Progress::amount(double value) const {
  if (unit_.empty()) return format_bytes(static_cast<uint64_t>(value));
  return fmt::format("{:.{}f} {}", value, value == std::floor(value) ? 0 : 1, unit_);
}

std::string format_bytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(kUnits)) value /= 1000, ++unit;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace tercet::app
