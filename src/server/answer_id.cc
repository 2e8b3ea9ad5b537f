#include "server/answer_id.h"

#include <fmt/format.h>

#include <chrono>
#include <random>

namespace tercet::server {

std::string random_id(std::string_view kind) {
  thread_local std::random_device device;
  const uint64_t high = uint64_t{device()} << 32 | device();
  const uint64_t low = uint64_t{device()} << 32 | device();
  return fmt::format("{}-{:016x}{:016x}", kind, high, low);
}

int64_t unix_time() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

}  // namespace tercet::server
