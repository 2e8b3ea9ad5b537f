#include "base/memory_info.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>

namespace tercet {
namespace {

// The number behind `key` in a file of "key: number kB" lines.
int64_t kilobytes_of(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key)) return std::atoll(line.c_str() + key.size()) * 1024;
  return 0;
}

// The number that a file holds, or -1 ("max", or no such file).
int64_t number_in(const char* path) {
  std::ifstream file(path);
  int64_t value = -1;
  return file >> value ? value : -1;
}

}  // namespace

int64_t available_memory() {
  const int64_t system = kilobytes_of("/proc/meminfo", "MemAvailable:");
  const int64_t limit = number_in("/sys/fs/cgroup/memory.max");
  const int64_t used = number_in("/sys/fs/cgroup/memory.current");
  if (limit < 0 || used < 0) return system;
  return std::min(system, std::max<int64_t>(0, limit - used));
}

int64_t peak_resident_memory() { return kilobytes_of("/proc/self/status", "VmHWM:"); }
int64_t resident_file_memory() { return kilobytes_of("/proc/self/status", "RssFile:"); }

}  // namespace tercet
