#include "text/jinja/strftime.h"

#include <algorithm>

namespace tercet::text::jinja {
namespace {

constexpr std::string_view kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                      "Thursday", "Friday", "Saturday"};
constexpr std::string_view kMonths[] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};

std::string padded(int value, size_t width, char fill) {
  std::string digits = std::to_string(value);
  if (fill != '\0' && digits.size() < width) digits.insert(0, width - digits.size(), fill);
  return digits;
}

std::string_view day_name(const std::tm& time) {
  return kDays[static_cast<size_t>(std::clamp(time.tm_wday, 0, 6))];
}
std::string_view month_name(const std::tm& time) {
  return kMonths[static_cast<size_t>(std::clamp(time.tm_mon, 0, 11))];
}

// Directives that stand for several others; null for all the rest.
const char* composite(char directive) {
  switch (directive) {
    case 'c': return "%a %b %e %H:%M:%S %Y";
    case 'D': return "%m/%d/%y";
    case 'F': return "%Y-%m-%d";
    case 'R': return "%H:%M";
    case 'T':
    case 'X': return "%H:%M:%S";
    case 'x': return "%m/%d/%y";
    default: return nullptr;
  }
}

std::string directive_text(char directive, char zero, const std::tm& time) {
  switch (directive) {
    case 'a': return std::string(day_name(time).substr(0, 3));
    case 'A': return std::string(day_name(time));
    case 'b':
    case 'h': return std::string(month_name(time).substr(0, 3));
    case 'B': return std::string(month_name(time));
    case 'd': return padded(time.tm_mday, 2, zero);
    case 'e': return padded(time.tm_mday, 2, zero == '\0' ? '\0' : ' ');
    case 'f': return "000000";
    case 'H': return padded(time.tm_hour, 2, zero);
    case 'I': return padded((time.tm_hour + 11) % 12 + 1, 2, zero);
    case 'j': return padded(time.tm_yday + 1, 3, zero);
    case 'm': return padded(time.tm_mon + 1, 2, zero);
    case 'M': return padded(time.tm_min, 2, zero);
    case 'n': return "\n";
    case 'p': return time.tm_hour < 12 ? "AM" : "PM";
    case 'S': return padded(time.tm_sec, 2, zero);
    case 't': return "\t";
    case 'u': return std::to_string(time.tm_wday == 0 ? 7 : time.tm_wday);
    case 'w': return std::to_string(time.tm_wday);
    case 'y': return padded((time.tm_year % 100 + 100) % 100, 2, zero);
    case 'Y': return std::to_string(time.tm_year + 1900);
    case 'z':
    case 'Z': return "";
    case '%': return "%";
    default: return std::string("%") + directive;
  }
}

}  // namespace

std::string format_time(std::string_view format, const std::tm& time) {
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    const bool is_unpadded = format[++i] == '-' && i + 1 < format.size();
    if (is_unpadded) ++i;
    const char* parts = composite(format[i]);
    out += parts != nullptr ? format_time(parts, time)
                            : directive_text(format[i], is_unpadded ? '\0' : '0', time);
  }
  return out;
}

}  // namespace tercet::text::jinja
