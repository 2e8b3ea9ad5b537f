#include <curl/curl.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "app/commands.h"
#include "app/environment.h"
#include "app/interrupt.h"
#include "app/progress.h"
#include "app/quantile_table.h"
#include "app/trace_flags.h"
#include "bench/load.h"

namespace tercet::app {
namespace {

struct ServeBenchFlags {
  std::string url = "http://127.0.0.1:8080/v1";
  bench::LoadTarget target;
  TraceFlags trace;
  int clients = 8, requests = 64, input = 256, output = 128, prefix = 0, timeout_seconds = 600;
  double rate = 0;
  int64_t seed = -1;
  double first_token_milliseconds = 0, per_token_milliseconds = 0;
  bool json = false;
};

// Of http://HOST[:PORT][/PATH], or https.
Status read_url(const std::string& url, bench::LoadTarget& target) {
  const std::unique_ptr<CURLU, void (*)(CURLU*)> parsed(curl_url(), curl_url_cleanup);
  const auto part = [&](CURLUPart which) {
    char* text = nullptr;
    std::string value;
    if (curl_url_get(parsed.get(), which, &text, CURLU_DEFAULT_PORT) == CURLUE_OK) value = text;
    curl_free(text);
    return value;
  };
  const Error wrong{ErrorCode::kInvalidArgument, "is no address such as http://127.0.0.1:8080/v1", url};
  if (curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return wrong;
  const std::string scheme = part(CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") return wrong;
  target.origin.tls = scheme == "https";
  target.origin.host = part(CURLUPART_HOST);
  if (target.origin.host.starts_with('['))  // an IPv6 address
    target.origin.host = target.origin.host.substr(1, target.origin.host.size() - 2);
  target.origin.port = static_cast<uint16_t>(std::stoi(part(CURLUPART_PORT)));
  target.path = part(CURLUPART_PATH);
  if (target.path == "/") target.path = "/v1";
  if (target.path.ends_with('/')) target.path.pop_back();
  return {};
}

std::string loop_name(const ServeBenchFlags& flags) {
  if (!flags.trace.file.empty()) return fmt::format("trace {}", flags.trace.file);
  if (flags.rate > 0) return fmt::format("open loop of {} requests/s", flags.rate);
  return fmt::format("closed loop of {} clients", flags.clients);
}

Result<bench::LoadPlan> make_plan(const ServeBenchFlags& flags) {
  bench::LoadPlan plan;
  const auto seed = static_cast<uint64_t>(flags.seed);
  if (!flags.trace.file.empty()) {
    TERCET_ASSIGN(bench::Trace trace, read_trace(flags.trace));
    for (const bench::TraceRequest& request : trace.requests)
      plan.requests.push_back({request.start, request.new_tokens});
    plan.prompt = [trace = std::move(trace)](size_t index) { return bench::trace_prompt(trace, index); };
    return plan;
  }
  if (flags.rate > 0) {
    plan.requests = bench::poisson_requests(flags.requests, flags.rate, flags.output, seed);
  } else {
    plan.requests.assign(static_cast<size_t>(flags.requests), {0, flags.output});
    plan.clients = flags.clients;
  }
  plan.prompt = [seed, input = flags.input,
                 prefix = bench::random_tokens(seed << 24, flags.prefix)](size_t index) {
    std::vector<int32_t> tokens = prefix;
    const std::vector<int32_t> own = bench::random_tokens((seed << 24) + 1 + index, input);
    tokens.insert(tokens.end(), own.begin(), own.end());
    return tokens;
  };
  return plan;
}

double per_second(int64_t count, const bench::LoadResult& result) {
  return result.seconds > 0 ? static_cast<double>(count) / result.seconds : 0;
}

void print_table(const ServeBenchFlags& flags, const bench::LoadResult& result,
                 const bench::LoadSummary& summary) {
  fmt::print("{} at {}, model {}, seed {}\n", loop_name(flags), flags.url, result.model, flags.seed);
  fmt::print("{} requests in {:.2f} s: {} completed\n", result.records.size(), result.seconds,
             summary.num_completed);
  for (const auto& [error, count] : summary.errors) fmt::print("{} failed: {}\n", count, error);
  if (summary.num_unfinished > 0) fmt::print("{} unfinished\n", summary.num_unfinished);
  if (summary.num_completed == 0) return;
  fmt::print(
      "{:.2f} requests/s; tokens/s: prompt {:.1f} ({:.1f} % cached), new {:.1f}, together {:.1f}\n",
      per_second(summary.num_completed, result), per_second(summary.prompt_tokens, result),
      summary.prompt_tokens == 0
          ? 0.0
          : 100 * static_cast<double>(summary.cached_tokens) / static_cast<double>(summary.prompt_tokens),
      per_second(summary.new_tokens, result), per_second(summary.prompt_tokens + summary.new_tokens, result));
  if (flags.first_token_milliseconds > 0 || flags.per_token_milliseconds > 0)
    fmt::print("goodput {:.2f} requests/s: {} of {} kept to the objectives\n",
               per_second(summary.num_good, result), summary.num_good, result.records.size());
  fmt::print("\n");
  print_quantile_head();
  print_quantiles("first token", summary.first_token, 1e-3, "ms");
  print_quantiles("between tokens", summary.between_tokens, 1e-3, "ms");
  print_quantiles("per token", summary.per_token, 1e-3, "ms, a request's mean");
  print_quantiles("whole answer", summary.whole, 1, "s");
}

void print_json(const ServeBenchFlags& flags, const bench::LoadResult& result,
                const bench::LoadSummary& summary) {
  nlohmann::json requests = nlohmann::json::array();
  for (const bench::LoadRecord& record : result.records) {
    requests.push_back({{"start", record.start},
                        {"first_token", record.first_token},
                        {"end", record.end},
                        {"prompt_tokens", record.prompt_tokens},
                        {"cached_tokens", record.cached_tokens},
                        {"new_tokens", record.new_tokens},
                        {"completed", record.completed()},
                        {"error", record.error}});
  }
  const nlohmann::json out = {
      {"url", flags.url},
      {"model", result.model},
      {"load", loop_name(flags)},
      {"seed", flags.seed},
      {"seconds", result.seconds},
      {"completed", summary.num_completed},
      {"unfinished", summary.num_unfinished},
      {"errors", summary.errors},
      {"prompt_tokens", summary.prompt_tokens},
      {"cached_tokens", summary.cached_tokens},
      {"new_tokens", summary.new_tokens},
      {"requests_per_second", per_second(summary.num_completed, result)},
      {"new_tokens_per_second", per_second(summary.new_tokens, result)},
      {"tokens_per_second", per_second(summary.prompt_tokens + summary.new_tokens, result)},
      {"goodput_requests_per_second", per_second(summary.num_good, result)},
      {"first_token_seconds", to_json(summary.first_token)},
      {"between_tokens_seconds", to_json(summary.between_tokens)},
      {"per_token_seconds", to_json(summary.per_token)},
      {"request_seconds", to_json(summary.whole)},
      {"requests", requests},
  };
  fmt::print("{}\n", out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

Status start(ServeBenchFlags& flags) {
  TERCET_TRY(read_url(flags.url, flags.target));
  if (flags.target.api_key.empty()) flags.target.api_key = api_key();
  flags.target.timeout = std::chrono::seconds(flags.timeout_seconds);
  if (flags.seed < 0) flags.seed = std::random_device()();
  TERCET_ASSIGN(const bench::LoadPlan plan, make_plan(flags));
  catch_interrupts();
  Progress progress("load", plan.requests.size(), "requests");
  const auto go_on = [&](const bench::LoadProgress& now) {
    progress.update(static_cast<uint64_t>(now.num_ended));
    return !take_interrupt();
  };
  TERCET_ASSIGN(const bench::LoadResult result, bench::run_load(flags.target, plan, go_on));
  progress.clear();
  const bench::LoadSummary summary =
      bench::summarize(result, {flags.first_token_milliseconds / 1000, flags.per_token_milliseconds / 1000});
  flags.json ? print_json(flags, result, summary) : print_table(flags, result, summary);
  if (summary.num_completed > 0 || summary.errors.empty()) return {};
  return Error{ErrorCode::kIo, "no request was completed: " + summary.errors.begin()->first, flags.url};
}

void add_flags(CLI::App& command, ServeBenchFlags& flags) {
  const auto text = [&](const char* name, std::string& value, const char* type, const char* help) {
    return command.add_option(name, value, help)->type_name(type);
  };
  const auto number = [&](const char* name, int& value, int least, const char* help) {
    return command.add_option(name, value, help)
        ->check(CLI::Range(least, 1 << 20).description(""))
        ->type_name("N")
        ->capture_default_str();
  };
  const auto amount = [&](const char* name, double& value, const char* type, const char* help) {
    return command.add_option(name, value, help)
        ->check(CLI::Range(0.0, 1e9).description(""))
        ->type_name(type);
  };
  text("--url", flags.url, "URL", "of the server's API")->capture_default_str();
  text("--model", flags.target.model, "NAME", "as the server calls it (default: its first one)");
  text("--api-key", flags.target.api_key, "KEY", "also the variable TERCET_API_KEY");
  auto* clients = number("--clients", flags.clients, 1, "each asks again when it has its answer");
  auto* requests = number("--requests", flags.requests, 1, "how many in all");
  auto* rate = amount("--rate", flags.rate, "X", "requests a second, at random times, in place of clients");
  number("--input", flags.input, 1, "tokens of a prompt, random ones");
  number("--output", flags.output, 1, "tokens of an answer");
  number("--prefix", flags.prefix, 0, "tokens before them that all prompts share");
  command.add_option("--seed", flags.seed, "of prompts and times (default: a new one)")->type_name("N");
  add_trace_flags(command, flags.trace, false);
  amount("--slo-ttft", flags.first_token_milliseconds, "MS", "goodput: the first token within so many ms");
  amount("--slo-tbt", flags.per_token_milliseconds, "MS", "goodput: further ones so far apart, on average");
  number("--timeout", flags.timeout_seconds, 1, "seconds that one request may take");
  command.add_flag("--json", flags.json, "print JSON, with every request");
  auto* trace = command.get_option("--trace");
  for (auto* other : {clients, requests, rate, command.get_option("--input"), command.get_option("--output"),
                      command.get_option("--prefix")})
    trace->excludes(other);
  rate->excludes(clients);
}

}  // namespace

void add_bench_serve_command(CLI::App& bench, Action* action) {
  const auto flags = std::make_shared<ServeBenchFlags>();
  CLI::App* command = bench.add_subcommand("serve", "Put load on a running server and measure it");
  add_flags(*command, *flags);
  command->callback([=] { *action = [=] { return start(*flags); }; });
}

}  // namespace tercet::app
