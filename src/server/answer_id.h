// What every answer of the API carries. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tercet::server {

// "KIND-" and 32 random hexadecimal digits.
std::string random_id(std::string_view kind);
// Seconds since 1970.
int64_t unix_time();

}  // namespace tercet::server
