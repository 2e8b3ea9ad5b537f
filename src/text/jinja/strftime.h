// Dates as text, in English whatever the locale.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

namespace tercet::text::jinja {

// strftime() for %a %A %b %B %c %d %D %e %f %F %H %I %j %m %M %n %p %S %t %T %u %w %x %X %y %Y %z %Z %%, with
// the C library's "-" (no padding) between. Unknown directives stay as they are. The time zone is written as
// nothing, as Python does for a time without one.
std::string format_time(std::string_view format, const std::tm& time);

}  // namespace tercet::text::jinja
