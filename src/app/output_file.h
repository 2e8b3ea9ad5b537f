// A file that takes long to write: it lies beside its name as NAME.part, which an interruption leaves and a
// later run may continue, and gets its name when it is complete and synced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace tercet::app {

class OutputFile {
 public:
  // Creates the folders above `path`. `keep`: continue an existing .part, else start empty.
  static Result<OutputFile> open(const std::string& path, bool keep);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  uint64_t size() const { return size_; }
  const std::string& part_path() const { return part_path_; }
  Status append(std::span<const std::byte> data);
  Status truncate();  // to nothing
  Status remove();    // the .part, for contents found to be wrong
  Status commit();    // sync and rename
  // SHA-256 of what has been written, as 64 hexadecimal digits.
  Result<std::string> sha256() const;

 private:
  OutputFile(std::string path, int fd, uint64_t size)
      : path_(std::move(path)), part_path_(path_ + ".part"), fd_(fd), size_(size) {}
  Error error(const char* action) const;  // from errno

  std::string path_;
  std::string part_path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

// SHA-256 of a file as 64 hexadecimal digits, read in pieces.
Result<std::string> sha256_of_file(const std::string& path);

// An error when the file system of `folder` has less than `bytes` free.
Status check_disk_space(const std::string& folder, uint64_t bytes);

}  // namespace tercet::app
