// What this process uses and may use of the machine's memory, in bytes. 0 where the system does not say.
#pragma once

#include <cstdint>

namespace tercet {

// Memory that this process may still take: what the system has available, bounded by the cgroup's limit (v2).
int64_t available_memory();

// Lines of /proc/self/status.
int64_t peak_resident_memory();  // VmHWM
int64_t resident_file_memory();  // RssFile

}  // namespace tercet
