#include "app/hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/download.h"

namespace tercet::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "hf:";
constexpr size_t kMaxListing = 16 << 20;

struct HubFile {
  std::string name;
  std::string sha256;  // "" when the listing has none
};

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
}

// A component of a path that is safe below the models' folder and in a URL.
bool is_safe_component(std::string_view text) {
  return !text.empty() && text.front() != '.' && text.size() <= 200 &&
         std::ranges::all_of(text, is_name_character);
}

bool is_safe_path(std::string_view path) {
  for (;;) {
    const size_t slash = path.find('/');
    if (!is_safe_component(path.substr(0, slash))) return false;
    if (slash == path.npos) return true;
    path.remove_prefix(slash + 1);
  }
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// A split file's name ends in -00001-of-00003.gguf.
struct PartName {
  std::string stem;
  int part = 1;
  int total = 1;
};

PartName parse_split(const std::string& file) {
  constexpr size_t kTail = std::string_view("-00001-of-00003.gguf").size();
  PartName split{.stem = file.substr(0, file.size() - std::string_view(".gguf").size())};
  if (file.size() <= kTail) return split;
  const std::string tail = file.substr(file.size() - kTail);
  const auto digits = [&](size_t at) {
    int value = 0;
    for (size_t i = at; i < at + 5; ++i) {
      if (std::isdigit(static_cast<unsigned char>(tail[i])) == 0) return -1;
      value = 10 * value + (tail[i] - '0');
    }
    return value;
  };
  const int part = digits(1);
  const int total = digits(10);
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || part < 1 || total < part) return split;
  return {file.substr(0, file.size() - kTail), part, total};
}

// The GGUF models among `files`: by stem, their parts in order. Projectors for images are left out.
std::map<std::string, std::vector<std::string>> group_models(std::vector<std::string> files) {
  std::ranges::sort(files);
  std::map<std::string, std::vector<std::string>> models;
  for (const std::string& file : files) {
    const std::string base = lower(fs::path(file).filename().string());
    if (base.ends_with(".gguf") && !base.starts_with("mmproj"))
      models[parse_split(file).stem].push_back(file);
  }
  return models;
}

std::string folder_of(const HubName& name, const std::string& models_folder) {
  return fmt::format("{}/hf/{}/{}", models_folder, name.owner, name.repo);
}

std::string full_name(const HubName& name) { return fmt::format("{}{}/{}", kPrefix, name.owner, name.repo); }

Result<std::vector<HubFile>> list_files(const HubName& name, const HubOptions& options) {
  const std::string url =
      fmt::format("{}/api/models/{}/{}?blobs=true", options.endpoint, name.owner, name.repo);
  TERCET_ASSIGN(const std::string text, http_get(url, options.token, kMaxListing));
  const Error malformed{ErrorCode::kCorrupt,
                        "the server's answer is no list of files; is this the endpoint of a model hub?", url};
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("siblings") || !json["siblings"].is_array()) return malformed;
  std::vector<HubFile> files;
  for (const auto& entry : json["siblings"]) {
    if (!entry.is_object() || !entry.contains("rfilename") || !entry["rfilename"].is_string())
      return malformed;
    HubFile file{.name = entry["rfilename"].get<std::string>(), .sha256 = ""};
    const auto lfs = entry.find("lfs");
    if (lfs != entry.end() && lfs->is_object() && lfs->contains("sha256") && (*lfs)["sha256"].is_string()) {
      file.sha256 = lower((*lfs)["sha256"].get<std::string>());
    }
    if (is_safe_path(file.name)) files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

bool is_hub_name(std::string_view name) { return name.starts_with(kPrefix); }

Result<HubName> parse_hub_name(std::string_view name) {
  std::string_view rest = name.substr(std::min(name.size(), kPrefix.size()));
  const size_t colon = rest.find(':');
  HubName parsed;
  if (colon != rest.npos) parsed.file = rest.substr(colon + 1);
  rest = rest.substr(0, colon);
  const size_t slash = rest.find('/');
  parsed.owner = rest.substr(0, slash);
  if (slash != rest.npos) parsed.repo = rest.substr(slash + 1);
  const bool file_is_safe = colon == std::string_view::npos ? true : is_safe_path(parsed.file);
  if (is_hub_name(name) && is_safe_component(parsed.owner) && is_safe_component(parsed.repo) && file_is_safe)
    return parsed;
  return Error{ErrorCode::kInvalidArgument, "is not of the form hf:OWNER/REPO or hf:OWNER/REPO:FILE",
               std::string(name)};
}

Result<std::vector<std::string>> choose_files(const std::vector<std::string>& files,
                                              const std::string& wanted) {
  const auto models = group_models(files);
  std::vector<std::string> fitting;  // stems
  for (const auto& [stem, parts] : models) {
    if (std::ranges::find(parts, wanted) != parts.end()) {
      fitting = {stem};
      break;
    }
    if (lower(stem).find(lower(wanted)) != std::string::npos) fitting.push_back(stem);
  }
  if (wanted.empty() && fitting.size() > 1) {
    std::vector<std::string> preferred;
    std::ranges::copy_if(fitting, std::back_inserter(preferred),
                         [](const std::string& stem) { return lower(stem).ends_with("q4_k_m"); });
    if (preferred.size() == 1) fitting = preferred;
  }
  if (fitting.size() != 1) {
    std::vector<std::string> names;
    for (const auto& [stem, parts] : models) names.push_back(parts.front());
    if (names.empty()) return Error{ErrorCode::kNotFound, "the repository has no GGUF file", wanted};
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} of the repository's GGUF files fit{}{}; name one of: {}",
                             fitting.empty() ? "none" : std::to_string(fitting.size()),
                             wanted.empty() ? "" : " ", wanted, fmt::join(names, ", ")),
                 wanted};
  }
  const std::vector<std::string>& parts = models.at(fitting[0]);
  const int total = parse_split(parts.front()).total;
  if (static_cast<int>(parts.size()) == total) return parts;
  return Error{ErrorCode::kNotFound, fmt::format("the repository has {} of {} parts", parts.size(), total),
               parts.front()};
}

Result<std::string> pull_from_hub(const HubName& name, const HubOptions& options) {
  TERCET_ASSIGN(const std::vector<HubFile> files, list_files(name, options));
  std::vector<std::string> names;
  for (const HubFile& file : files) names.push_back(file.name);
  Result<std::vector<std::string>> chosen = choose_files(names, name.file);
  if (!chosen) {
    Error error = chosen.error();
    error.where = full_name(name);
    return error;
  }
  const std::string folder = folder_of(name, options.models_folder);
  for (const std::string& file : *chosen) {
    const std::string path = folder + "/" + file;
    std::error_code ignored;
    if (fs::exists(path, ignored)) continue;
    const Download request{
        .url = fmt::format("{}/{}/{}/resolve/main/{}", options.endpoint, name.owner, name.repo, file),
        .path = path,
        .label = file,
        .token = options.token,
        .sha256 = std::ranges::find(files, file, &HubFile::name)->sha256,
        .retry_delay = options.retry_delay,
    };
    TERCET_ASSIGN(const Downloaded done, download(request));
    if (!done.verified) {
      fmt::print(stderr, "{}: the server gave no SHA-256 to check against; this file has {}\n", path,
                 done.sha256);
    }
  }
  return folder + "/" + chosen->front();
}

Result<std::string> find_pulled(const HubName& name, const std::string& models_folder) {
  const fs::path folder = folder_of(name, models_folder);
  std::vector<std::string> names;
  std::error_code failed;
  for (auto it = fs::recursive_directory_iterator(folder, failed); !failed && it != fs::end(it);
       it.increment(failed)) {
    if (it->is_regular_file(failed)) names.push_back(fs::relative(it->path(), folder).string());
  }
  if (group_models(names).empty()) return std::string();
  const Result<std::vector<std::string>> chosen = choose_files(names, name.file);
  if (chosen.ok()) return (folder / chosen->front()).string();
  if (!name.file.empty()) return std::string();
  return chosen.error();
}

}  // namespace tercet::app
