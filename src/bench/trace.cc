#include "bench/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "base/parse_number.h"

namespace tercet::bench {
namespace {

constexpr int kMaxTokens = 1 << 20;  // of a prompt or an answer
constexpr std::string_view kAzureHead = "TIMESTAMP,ContextTokens,GeneratedTokens";
constexpr uint64_t kBlockSeed = uint64_t{1} << 62;  // apart from the seeds of whole prompts

// "2023-11-16 18:17:03.9799600" in seconds since 1970.
std::optional<double> date_time(std::string_view text) {
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || text[13] != ':' || text[16] != ':') return {};
  const auto year = parse_number<int>(text.substr(0, 4));
  const auto month = parse_number<unsigned>(text.substr(5, 2)),
             day = parse_number<unsigned>(text.substr(8, 2));
  const auto hour = parse_number<int>(text.substr(11, 2)), minute = parse_number<int>(text.substr(14, 2));
  const auto second = parse_number<double>(text.substr(17));
  if (!year || !month || !day || !hour || !minute || !second) return {};
  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(*month),
                                         std::chrono::day(*day)};
  if (!date.ok()) return {};
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return static_cast<double>(days) * 86'400 + *hour * 3600 + *minute * 60 + *second;
}

std::optional<TraceRequest> azure_line(std::string_view line) {
  const size_t first = line.find(','), second = line.find(',', first + 1);
  if (first == line.npos || second == line.npos) return {};
  const auto time = date_time(line.substr(0, first));
  const auto prompt = parse_number<int>(line.substr(first + 1, second - first - 1));
  const auto answer = parse_number<int>(line.substr(second + 1));
  if (!time || !prompt || !answer) return {};
  return TraceRequest{*time, *prompt, *answer, {}};
}

std::optional<TraceRequest> mooncake_line(std::string_view line) {
  const nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
  const auto count = [&](const char* key) -> std::optional<uint64_t> {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_number_unsigned()) return {};
    return found->get<uint64_t>();
  };
  if (!object.is_object()) return {};
  const auto time = count("timestamp"), prompt = count("input_length"), answer = count("output_length");
  const auto blocks = object.find("hash_ids");
  if (!time || !prompt || !answer || std::max(*prompt, *answer) > kMaxTokens) return {};
  if (blocks == object.end() || !blocks->is_array()) return {};
  TraceRequest request{
      static_cast<double>(*time) / 1000, static_cast<int>(*prompt), static_cast<int>(*answer), {}};
  for (const nlohmann::json& block : *blocks) {
    if (!block.is_number_unsigned()) return {};
    request.blocks.push_back(block.get<int64_t>());
  }
  return request;
}

bool sensible(const TraceRequest& request, int block_tokens) {
  const auto blocks = static_cast<int64_t>(request.blocks.size());
  return request.prompt_tokens >= 1 && request.prompt_tokens <= kMaxTokens && request.new_tokens >= 0 &&
         request.new_tokens <= kMaxTokens &&
         (blocks == 0 || (blocks * block_tokens >= request.prompt_tokens &&
                          (blocks - 1) * block_tokens < request.prompt_tokens));
}

void append_random(uint64_t seed, int size, std::vector<int32_t>& tokens) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < size; ++i) tokens.push_back(kFirstToken + static_cast<int32_t>(random() % kNumTokens));
}

}  // namespace

Result<Trace> parse_trace(std::string_view text, const std::string& where) {
  Trace trace;
  const bool azure = text.starts_with(kAzureHead);
  for (size_t begin = 0, line_number = 1; begin < text.size(); ++line_number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line == kAzureHead) continue;
    auto request = azure ? azure_line(line) : mooncake_line(line);
    if (!request || !sensible(*request, trace.block_tokens)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("is no request of a trace: expected Azure's \"{}\" below that head, or "
                               "Mooncake's {{\"timestamp\", \"input_length\", \"output_length\", "
                               "\"hash_ids\"}} with one id for each {} tokens",
                               kAzureHead, trace.block_tokens),
                   fmt::format("{}:{}", where, line_number)};
    }
    trace.requests.push_back(*std::move(request));
  }
  if (trace.requests.empty()) return Error{ErrorCode::kInvalidArgument, "holds no requests", where};
  std::ranges::stable_sort(trace.requests, {}, &TraceRequest::start);
  const double first = trace.requests.front().start;
  for (TraceRequest& request : trace.requests) request.start -= first;
  return trace;
}

Trace scaled(Trace trace, const TraceScale& scale) {
  if (scale.limit > 0 && static_cast<size_t>(scale.limit) < trace.requests.size())
    trace.requests.resize(static_cast<size_t>(scale.limit));
  trace.block_tokens = std::max(1, trace.block_tokens / scale.shrink);
  for (TraceRequest& request : trace.requests) {
    request.start /= scale.speed;
    request.prompt_tokens = std::max(1, request.prompt_tokens / scale.shrink);
    request.new_tokens = std::max(1, request.new_tokens / scale.shrink);
  }
  return trace;
}

std::vector<int32_t> random_tokens(uint64_t seed, int size) {
  std::vector<int32_t> tokens;
  append_random(seed, size, tokens);
  return tokens;
}

std::vector<int32_t> trace_prompt(const Trace& trace, size_t index) {
  const TraceRequest& request = trace.requests[index];
  if (request.blocks.empty()) return random_tokens(index, request.prompt_tokens);
  std::vector<int32_t> tokens;
  for (const int64_t block : request.blocks) {
    const int left = request.prompt_tokens - static_cast<int>(tokens.size());
    append_random(kBlockSeed + static_cast<uint64_t>(block), std::min(left, trace.block_tokens), tokens);
  }
  // Block sizes are rounded: the last one may be longer.
  append_random(index, request.prompt_tokens - static_cast<int>(tokens.size()), tokens);
  return tokens;
}

}  // namespace tercet::bench
