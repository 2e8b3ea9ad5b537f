#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/policy_flag.h"
#include "app/quantile_table.h"
#include "app/trace_flags.h"
#include "bench/replay.h"

namespace tercet::app {
namespace {

struct ScheduleFlags {
  TraceFlags trace;
  bench::ReplayOptions replay;
  double step_milliseconds = 20;
  bool no_prefix_cache = false;
  bool json = false;
};

double fraction(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

void print_table(const bench::Trace& trace, const ScheduleFlags& flags, const bench::ReplayResult& result) {
  const sched::SchedulerStats& stats = result.stats;
  fmt::print("{} requests over {:.0f} s; answered by {:.0f} s\n", trace.requests.size(),
             trace.requests.back().start, result.seconds);
  if (result.num_refused > 0) fmt::print("{} were refused: the queue was full\n", result.num_refused);
  if (result.num_never_fit > 0) fmt::print("{} need more KV than the pool has\n", result.num_never_fit);
  fmt::print("{} steps with {:.1f} rows of {:.1f} sequences on average, {} preemptions\n", result.num_steps,
             fraction(result.num_rows, result.num_steps), fraction(result.num_sequences, result.num_steps),
             stats.num_preemptions);
  fmt::print("prefix cache: {:.1f} % of {} prompt tokens found; KV {:.0f} % of {} tokens at most\n\n",
             100 * fraction(stats.num_cached_tokens, stats.num_prompt_tokens), stats.num_prompt_tokens,
             100 * result.peak_kv_usage, flags.replay.num_kv_tokens);
  print_quantile_head();
  print_quantiles("queueing", result.queueing, 1, "s");
  print_quantiles("first token", result.first_token, 1, "s");
  print_quantiles("whole answer", result.whole, 1, "s");
}

void print_json(const bench::Trace& trace, const bench::ReplayResult& result) {
  const sched::SchedulerStats& stats = result.stats;
  const nlohmann::json out = {
      {"requests", trace.requests.size()},
      {"refused", result.num_refused},
      {"never_fit", result.num_never_fit},
      {"seconds", result.seconds},
      {"steps", result.num_steps},
      {"rows", result.num_rows},
      {"preemptions", stats.num_preemptions},
      {"prompt_tokens", stats.num_prompt_tokens},
      {"cached_tokens", stats.num_cached_tokens},
      {"peak_kv_usage", result.peak_kv_usage},
      {"queueing_seconds", to_json(result.queueing)},
      {"first_token_seconds", to_json(result.first_token)},
      {"request_seconds", to_json(result.whole)},
  };
  fmt::print("{}\n", out.dump());
}

Status start(ScheduleFlags& flags) {
  sched::SchedulerOptions& scheduler = flags.replay.scheduler;
  scheduler.decode_budget = scheduler.max_sequences;
  scheduler.token_budget = scheduler.decode_budget + scheduler.prefill_budget;
  flags.replay.step_seconds = flags.step_milliseconds / 1000;
  flags.replay.prefix_caching = !flags.no_prefix_cache;
  TERCET_TRY(sched::check_options(scheduler));
  TERCET_ASSIGN(const bench::Trace trace, read_trace(flags.trace));
  const bench::ReplayResult result = bench::replay(trace, flags.replay);
  flags.json ? print_json(trace, result) : print_table(trace, flags, result);
  return {};
}

}  // namespace

void add_bench_schedule_command(CLI::App& bench, Action* action) {
  const auto flags = std::make_shared<ScheduleFlags>();
  CLI::App* command = bench.add_subcommand(
      "schedule", "Replay a trace through the scheduler alone: queueing, prefix hits, preemptions");
  add_trace_flags(*command, flags->trace, true);
  const auto number = [&](const char* name, int& value, const char* help) {
    command->add_option(name, value, help)
        ->check(CLI::Range(1, 1 << 30).description(""))
        ->type_name("N")
        ->capture_default_str();
  };
  number("--kv-tokens", flags->replay.num_kv_tokens, "tokens that the KV cache holds");
  number("--parallel", flags->replay.scheduler.max_sequences, "requests that run at once");
  number("--max-queue", flags->replay.scheduler.max_queue, "requests that wait; further ones are refused");
  number("--prefill-chunk", flags->replay.scheduler.prefill_budget, "tokens of prompts in one step");
  add_policy_flag(*command, flags->replay.scheduler.policy);
  command->add_option("--step-ms", flags->step_milliseconds, "milliseconds that every step takes")
      ->check(CLI::Range(0.001, 1e6).description(""))
      ->type_name("MS")
      ->capture_default_str();
  command->add_option("--row-speed", flags->replay.rows_per_second, "rows (tokens) a second, beyond that")
      ->check(CLI::Range(1.0, 1e9).description(""))
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--no-prefix-cache", flags->no_prefix_cache, "every prompt is computed");
  command->add_flag("--json", flags->json, "print JSON");
  command->callback([=] { *action = [=] { return start(*flags); }; });
}

}  // namespace tercet::app
