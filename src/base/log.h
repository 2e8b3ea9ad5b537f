// Logging to stderr through spdlog. Thread-safe. Results go to stdout and never through here.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace tercet {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

enum class LogFormat {
  kPlain,  // "info: ..."
  kTimed,  // with date and time before it
  kJson,   // one object a line: time, level, message
};
void set_log_format(LogFormat format);

// Messages below `level` are dropped. The default is kInfo.
void set_log_level(LogLevel level);
void log_message(LogLevel level, std::string_view message);

template <class... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log_message(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_message(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_message(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_message(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace tercet
