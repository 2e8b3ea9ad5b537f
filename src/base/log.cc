#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <string>

namespace tercet {
namespace {

constexpr const char* kPlainPattern = "%^%l%$: %v";
std::atomic<LogFormat> log_format = LogFormat::kPlain;

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  return spdlog::level::info;
}

spdlog::logger& logger() {
  static const auto instance = [] {
    auto created = spdlog::stderr_color_mt("tercet");
    created->set_pattern(kPlainPattern);
    return created;
  }();
  return *instance;
}

}  // namespace

void set_log_level(LogLevel level) { logger().set_level(to_spdlog(level)); }

void set_log_format(LogFormat format) {
  log_format = format;
  switch (format) {
    case LogFormat::kPlain: return logger().set_pattern(kPlainPattern);
    case LogFormat::kTimed: return logger().set_pattern("%Y-%m-%d %H:%M:%S %^%l%$: %v");
    case LogFormat::kJson:
      return logger().set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","message":%v})");
  }
}

void log_message(LogLevel level, std::string_view message) {
  if (log_format == LogFormat::kJson) return logger().log(to_spdlog(level), "{}", json_string(message));
  logger().log(to_spdlog(level), "{}", message);
}

}  // namespace tercet
