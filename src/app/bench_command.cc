#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/model_flags.h"
#include "app/progress.h"
#include "base/memory_info.h"
#include "bench/speed.h"

namespace tercet::app {
namespace {

struct BenchFlags {
  ModelFlags model;
  bench::SpeedOptions speed;
  bool json = false;
};

void print_row(const char* name, const std::vector<double>& values, double unit, const char* unit_name) {
  const bench::Spread s = bench::spread(values);
  fmt::print("{:<16}{:>10.2f}{:>10.2f}{:>10.2f}  {}\n", name, s.median / unit, s.min / unit, s.max / unit,
             unit_name);
}

void print_table(const engine::Llm& llm, const BenchFlags& flags, const bench::SpeedResult& result) {
  const bench::SpeedOptions& speed = flags.speed;
  fmt::print("{} ({}), {}, {} threads, KV {}\n", llm.package().name, llm.package().type,
             backend::isa_name(flags.model.llm.device.isa), flags.model.llm.num_threads, flags.model.kv_type);
  fmt::print("loaded in {:.2f} s; {} repetitions of {} x {} prompt tokens and {} new ones\n\n",
             llm.load_stats().seconds, speed.repetitions, speed.sequences, speed.prompt_tokens,
             speed.new_tokens);
  fmt::print("{:<16}{:>10}{:>10}{:>10}\n", "", "median", "least", "most");
  print_row("prompt", result.prompt_speed, 1, "tokens/s");
  if (!result.generation_speed.empty()) print_row("generation", result.generation_speed, 1, "tokens/s");
  print_row("memory read", result.read_bandwidth, 1e9, "GB/s, one stream per thread");
  fmt::print("\nthe prompt's linear layers did {:.0f} GOPS, {:.0f} % of the multipliers' peak of {:.0f}",
             bench::multiply_fraction(result) * result.peak_operations / 1e9,
             100 * bench::multiply_fraction(result), result.peak_operations / 1e9);
  if (!result.generation_speed.empty())
    fmt::print("\ngeneration read {} per token, {:.0f} % of that bandwidth\n",
               format_bytes(static_cast<uint64_t>(result.bytes_per_token)),
               100 * bench::bandwidth_fraction(result));
  fmt::print("memory: {} at most, {} of it mapped files\n",
             format_bytes(static_cast<uint64_t>(peak_resident_memory())),
             format_bytes(static_cast<uint64_t>(resident_file_memory())));
}

void print_json(const engine::Llm& llm, const BenchFlags& flags, const bench::SpeedResult& result) {
  const nlohmann::json out = {
      {"model", llm.package().path},
      {"isa", backend::isa_name(flags.model.llm.device.isa)},
      {"threads", flags.model.llm.num_threads},
      {"kv_type", flags.model.kv_type},
      {"load_seconds", llm.load_stats().seconds},
      {"prompt_tokens", flags.speed.prompt_tokens},
      {"new_tokens", flags.speed.new_tokens},
      {"sequences", flags.speed.sequences},
      {"prompt_tokens_per_second", result.prompt_speed},
      {"generation_tokens_per_second", result.generation_speed},
      {"read_bytes_per_second", result.read_bandwidth},
      {"bytes_per_token", result.bytes_per_token},
      {"operations_per_prompt_token", result.operations_per_token},
      {"peak_operations_per_second", result.peak_operations},
      {"peak_memory_bytes", peak_resident_memory()},
  };
  fmt::print("{}\n", out.dump());
}

Status start(BenchFlags& flags) {
  TERCET_ASSIGN(const std::string path, apply_model_flags(flags.model));
  engine::LlmOptions& llm_options = flags.model.llm;
  const int needed = flags.speed.prompt_tokens + flags.speed.new_tokens;
  if (llm_options.context_length == 0) llm_options.context_length = needed;
  llm_options.num_sequences = flags.speed.sequences;
  flags.speed.isa = llm_options.device.isa;
  if (llm_options.num_threads == 0) llm_options.num_threads = usable_cpus();
  TERCET_ASSIGN(const std::unique_ptr<engine::Llm> llm, load_model(path, llm_options));
  const auto on_progress = [&](int done, int total) {
    if (done < total) fmt::print(stderr, "repetition {} of {}\n", done + 1, total);
  };
  TERCET_ASSIGN(const bench::SpeedResult result, bench::measure_speed(*llm, flags.speed, on_progress));
  flags.json ? print_json(*llm, flags, result) : print_table(*llm, flags, result);
  return {};
}

}  // namespace

void add_bench_command(CLI::App& app, Action* action) {
  const auto flags = std::make_shared<BenchFlags>();
  CLI::App* command = app.add_subcommand("bench", "Measure speed: of a model, a server, kernels, tokenizers, the scheduler");
  add_model_flags(*command, flags->model);
  const auto number = [&](const char* names, int& value, const char* help) {
    command->add_option(names, value, help)
        ->check(CLI::Range(1, 1 << 20).description(""))
        ->type_name("N")
        ->capture_default_str();
  };
  number("-p,--prompt-tokens", flags->speed.prompt_tokens, "length of the prompt");
  number("-n,--new-tokens", flags->speed.new_tokens, "tokens to generate after it");
  number("-b,--batch", flags->speed.sequences, "prompts that run together");
  number("-r,--repetitions", flags->speed.repetitions, "how often each is measured");
  command->add_flag("--json", flags->json, "print the values of every repetition as JSON");
  add_bench_tokenize_command(*command, action);
  add_bench_kernels_command(*command, action);
  add_bench_serve_command(*command, action);
  add_bench_schedule_command(*command, action);
  command->callback([=] {
    if (command->get_subcommands().empty()) *action = [=] { return start(*flags); };
  });
}

}  // namespace tercet::app
