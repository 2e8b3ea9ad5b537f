#include "app/download.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "app/output_file.h"
#include "app/progress.h"

namespace tercet::app {
namespace {

constexpr size_t kMaxErrorBody = 4096;

using Handle = std::unique_ptr<CURL, decltype([](CURL* handle) { curl_easy_cleanup(handle); })>;
using Headers = std::unique_ptr<curl_slist, decltype([](curl_slist* list) { curl_slist_free_all(list); })>;

// One exchange, redirects included. The callbacks fill it in.
struct Transfer {
  OutputFile* file = nullptr;  // nullptr: the body goes to `body`
  Progress* progress = nullptr;
  uint64_t offset = 0;  // asked for
  size_t max_body = 0;
  std::string body = {};                     // of an error, or of http_get
  std::string linked_etag = {};              // X-Linked-ETag of any response on the way
  std::string etag = {};                     // of the last response
  std::optional<uint64_t> range_first = {};  // Content-Range of the last response
  std::optional<uint64_t> range_total = {};
  std::optional<uint64_t> length = {};  // Content-Length of the last response
  long status = 0;                      // of the last response
  Status failed = {};                   // why a callback stopped the transfer
  bool body_begun = false;
  Error problem = {};  // why it is worth another try
};

std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

// "bytes 5-9/10", or "bytes */10" of a 416 (RFC 9110, 14.4).
void parse_content_range(std::string_view value, Transfer& transfer) {
  if (!value.starts_with("bytes ")) return;
  value.remove_prefix(6);
  transfer.range_first = number(value);
  if (const size_t slash = value.find('/'); slash != value.npos)
    transfer.range_total = number(value.substr(slash + 1));
}

size_t on_header(char* data, size_t, size_t size, void* context) {
  Transfer& transfer = *static_cast<Transfer*>(context);
  std::string_view line(data, size);
  if (line.starts_with("HTTP/")) {  // another response begins
    if (const size_t space = line.find(' '); space != line.npos) {
      transfer.status = static_cast<long>(number(line.substr(space + 1)).value_or(0));
    }
    transfer.etag.clear();
    transfer.range_first = transfer.range_total = transfer.length = std::nullopt;
    return size;
  }
  const size_t colon = line.find(':');
  if (colon == line.npos) return size;
  std::string name(line.substr(0, colon));
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string_view value = line.substr(colon + 1);
  const size_t begin = std::min(value.find_first_not_of(" \t"), value.size());
  value = value.substr(begin, value.find_last_not_of(" \t\r\n") + 1 - begin);
  if (name == "x-linked-etag") transfer.linked_etag = value;
  if (name == "etag") transfer.etag = value;
  if (name == "content-range") parse_content_range(value, transfer);
  if (name == "content-length") transfer.length = number(value);
  return size;
}

// What a 200 or a 206 has to do before its first byte is written.
Status begin_body(Transfer& transfer) {
  OutputFile& file = *transfer.file;
  if (transfer.status == 206 && transfer.range_first != transfer.offset) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("the server sent another range than from {}", transfer.offset),
                 file.part_path()};
  }
  if (transfer.status == 200 && file.size() > 0)
    TERCET_TRY(file.truncate());  // the server does not resume: all over again
  const auto total = transfer.status == 206 ? transfer.range_total : transfer.length;
  if (!total) return {};
  transfer.progress->set_total(*total);
  const std::string folder = std::filesystem::path(file.part_path()).parent_path();
  return check_disk_space(folder, *total - std::min(*total, file.size()));
}

size_t on_body(char* data, size_t, size_t size, void* context) {
  Transfer& transfer = *static_cast<Transfer*>(context);
  const bool is_error = transfer.status != 200 && transfer.status != 206;
  if (transfer.file == nullptr || is_error) {
    const size_t limit = is_error ? kMaxErrorBody : transfer.max_body;
    const size_t room = limit - std::min(limit, transfer.body.size());
    transfer.body.append(data, std::min(size, room));
    if (size <= room || is_error) return size;
    transfer.failed =
        Error{ErrorCode::kExhausted, fmt::format("the answer is larger than {}", format_bytes(limit)), ""};
    return 0;
  }
  if (!std::exchange(transfer.body_begun, true)) transfer.failed = begin_body(transfer);
  if (transfer.failed.ok()) transfer.failed = transfer.file->append(std::as_bytes(std::span(data, size)));
  if (!transfer.failed.ok()) return 0;
  transfer.progress->update(transfer.file->size());
  return size;
}

CURLcode perform(Transfer& transfer, const std::string& url, const std::string& token) {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (initialised != CURLE_OK) return initialised;
  const Handle handle(curl_easy_init());
  if (!handle) return CURLE_FAILED_INIT;
  CURL* curl = handle.get();
  Headers headers;
  if (!token.empty()) {
    // curl keeps a header set by hand from other hosts that it is redirected to.
    headers.reset(curl_slist_append(nullptr, ("Authorization: Bearer " + token).c_str()));
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  }
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "tercet/" TERCET_VERSION);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 8L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 20L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, 60L);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  const std::string range = fmt::format("{}-", transfer.offset);
  if (transfer.offset > 0) curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());
  return curl_easy_perform(curl);
}

Error status_error(long status, const std::string& url, const std::string& body) {
  if (status == 401 || status == 403) {
    return {ErrorCode::kInvalidArgument,
            fmt::format("the server refused ({}): the repository is private or gated, or does not exist; "
                        "set HF_TOKEN to a token that may read it",
                        status),
            url};
  }
  if (status == 404)
    return {ErrorCode::kNotFound, "the server has no such file or repository (404); check the name", url};
  std::string first_line = body.substr(0, std::min<size_t>(body.find_first_of("\r\n"), 200));
  return {ErrorCode::kIo,
          fmt::format("the server answered {}{}{}", status, first_line.empty() ? "" : ": ", first_line), url};
}

bool worth_retrying(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM: return true;
    default: return false;
  }
}

// True: answered with the document or a 416. False: `transfer.problem` may go away by itself. An error: it
// will not.
Result<bool> try_once(Transfer& transfer, const std::string& url, const std::string& token) {
  const CURLcode code = perform(transfer, url, token);
  if (!transfer.failed.ok()) return transfer.failed.error();
  if (code != CURLE_OK) {
    transfer.problem = {ErrorCode::kIo, curl_easy_strerror(code), url};
    if (worth_retrying(code)) return false;
    return transfer.problem;
  }
  const long status = transfer.status;
  if (status == 200 || status == 206 || (status == 416 && transfer.offset > 0)) return true;
  transfer.problem = status_error(status, url, transfer.body);
  if (status == 408 || status == 429 || status >= 500) return false;
  return transfer.problem;
}

struct Retries {
  int max_attempts;
  std::chrono::milliseconds delay;
  int attempt = 1;

  void start_over() { attempt = 1; }
  // False when there were enough; else sleeps, twice as long each time.
  bool wait() {
    if (attempt >= max_attempts) return false;
    std::this_thread::sleep_for(delay * (1 << (attempt - 1)));
    ++attempt;
    return true;
  }
};

// The SHA-256 in an entity tag: a quoted string of 64 hexadecimal digits; else "".
std::string sha256_of_etag(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() != 66 || etag.front() != '"' || etag.back() != '"') return "";
  std::string digits(etag.substr(1, 64));
  std::ranges::transform(digits, digits.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::all_of(digits, [](unsigned char c) { return std::isxdigit(c) != 0; }) ? digits : "";
}

Result<Downloaded> finish(const Download& request, OutputFile& file, std::string expected) {
  Downloaded result;
  result.bytes = file.size();
  TERCET_ASSIGN(result.sha256, file.sha256());
  result.verified = !expected.empty();
  if (result.verified && result.sha256 != expected) {
    TERCET_TRY(file.remove());
    return Error{ErrorCode::kCorrupt,
                 fmt::format("has SHA-256 {}, expected {}; what was downloaded is removed, pull it again",
                             result.sha256, expected),
                 request.path};
  }
  TERCET_TRY(file.commit());
  return result;
}

}  // namespace

Result<Downloaded> download(const Download& request) {
  TERCET_ASSIGN(OutputFile file, OutputFile::open(request.path, true));
  Progress progress(request.label, 0);
  std::string expected = request.sha256;
  Retries retries{request.max_attempts, request.retry_delay};
  uint64_t furthest = file.size();
  for (;;) {
    Transfer transfer{.file = &file, .progress = &progress, .offset = file.size()};
    TERCET_ASSIGN(const bool answered, try_once(transfer, request.url, request.token));
    if (expected.empty())
      expected = sha256_of_etag(transfer.linked_etag.empty() ? transfer.etag : transfer.linked_etag);
    if (answered && transfer.status == 416) {
      if (transfer.range_total == file.size()) break;  // it was complete already
      TERCET_TRY(file.truncate());
      continue;
    }
    if (answered) break;
    if (file.size() > furthest) retries.start_over();
    furthest = std::max(furthest, file.size());
    if (!retries.wait()) return transfer.problem;
  }
  progress.update(file.size());
  progress.finish();
  return finish(request, file, expected);
}

Result<std::string> http_get(const std::string& url, const std::string& token, size_t max_bytes) {
  Retries retries{5, std::chrono::milliseconds(500)};
  for (;;) {
    Transfer transfer{.max_body = max_bytes};
    TERCET_ASSIGN(const bool answered, try_once(transfer, url, token));
    if (answered) return std::move(transfer.body);
    if (!retries.wait()) return transfer.problem;
  }
}

}  // namespace tercet::app
