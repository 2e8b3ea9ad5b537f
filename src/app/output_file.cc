#include "app/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "app/progress.h"
#include "base/hash.h"

namespace tercet::app {
namespace {

Error errno_error(const char* action, const std::string& path) {
  const int code = errno;
  if (code == ENOSPC || code == EDQUOT) {
    return {ErrorCode::kExhausted,
            fmt::format("cannot {}: the disk is full; make room and run this again", action), path};
  }
  return {ErrorCode::kIo, fmt::format("cannot {}: {}", action, std::strerror(code)), path};
}

}  // namespace

Result<OutputFile> OutputFile::open(const std::string& path, bool keep) {
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
  if (failed) return Error{ErrorCode::kIo, "cannot create its folder: " + failed.message(), path};
  const std::string part = path + ".part";
  const int fd = ::open(part.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | (keep ? 0 : O_TRUNC), 0644);
  if (fd < 0) return errno_error("create", part);
  OutputFile file(path, fd, 0);
  struct stat info {};
  if (::fstat(fd, &info) != 0) return errno_error("stat", part);
  file.size_ = static_cast<uint64_t>(info.st_size);
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      part_path_(std::move(other.part_path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_) {}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
}

Error OutputFile::error(const char* action) const { return errno_error(action, part_path_); }

Status OutputFile::append(std::span<const std::byte> data) {
  while (!data.empty()) {
    const ssize_t written = ::write(fd_, data.data(), data.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return error("write");
    data = data.subspan(static_cast<size_t>(written));
    size_ += static_cast<uint64_t>(written);
  }
  return {};
}

Status OutputFile::truncate() {
  if (::ftruncate(fd_, 0) != 0) return error("truncate");
  size_ = 0;
  return {};
}

Status OutputFile::remove() {
  if (::unlink(part_path_.c_str()) != 0) return error("remove");
  return {};
}

Status OutputFile::commit() {
  if (::fsync(fd_) != 0) return error("sync");
  if (::rename(part_path_.c_str(), path_.c_str()) != 0) return error("rename to its name");
  return {};
}

Result<std::string> OutputFile::sha256() const { return sha256_of_file(part_path_); }

Result<std::string> sha256_of_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno_error("open", path);
  Sha256 hash;
  std::vector<std::byte> buffer(1 << 20);
  ssize_t got = 0;
  for (;;) {
    got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    hash.update(std::span(buffer).first(static_cast<size_t>(got)));
  }
  if (got < 0) {
    Error error = errno_error("read", path);
    ::close(fd);
    return error;
  }
  ::close(fd);
  return to_hex(hash.finish());
}

Status check_disk_space(const std::string& folder, uint64_t bytes) {
  struct statvfs info {};
  if (::statvfs(folder.c_str(), &info) != 0) return errno_error("see the free space", folder);
  const uint64_t available = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
  if (available >= bytes) return {};
  return Error{
      ErrorCode::kExhausted,
      fmt::format("needs {} of disk space and has {}; make room, or set TERCET_MODELS to another folder",
                  format_bytes(bytes), format_bytes(available)),
      folder};
}

}  // namespace tercet::app
