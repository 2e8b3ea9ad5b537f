// Files: read-only mappings, whole-file reads, and writes that appear under their name only when complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tercet {

// A read-only memory mapping of a whole file. Movable, not copyable; safe to read from any thread.
class MappedFile {
 public:
  // An empty file maps to an empty span.
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

  // Tells the kernel that `part` will not be read again soon: its whole pages leave this process's resident
  // set (they stay in the page cache) and are mapped again on the next access. Bytes of another file are left
  // alone.
  void release(std::span<const std::byte> part) const;

 private:
  MappedFile(std::string path, const std::byte* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

Result<std::string> read_file(const std::string& path);

// A file written piece by piece to a temporary name beside `path`. commit() syncs it and gives it its name; a
// writer that is destroyed without leaves nothing behind. Movable, not copyable; for one thread.
class FileWriter {
 public:
  static Result<FileWriter> create(const std::string& path);

  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&& other) noexcept;
  ~FileWriter();

  Status write(std::string_view data);
  // Nothing is written after it.
  Status commit();

 private:
  FileWriter(std::string path, std::string temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}
  std::string path_;
  std::string temporary_;
  int fd_ = -1;
};

// Writes to a temporary name beside `path`, syncs, and renames: `path` holds either its old contents or all
// of `data`.
Status write_file(const std::string& path, std::string_view data);

}  // namespace tercet
