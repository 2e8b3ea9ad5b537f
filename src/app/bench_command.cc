#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "app/commands.h"
#include "app/model_flags.h"
#include "app/progress.h"
#include "base/memory_info.h"
#include "bench/kernel_speed.h"
#include "bench/speed.h"

namespace tercet::app {
namespace {

struct BenchFlags {
  ModelFlags model;
  std::vector<int> prompts = {512};  // lengths
  std::vector<int> batches = {1};
  int new_tokens = 64;
  int repetitions = 3;
  bool json = false;
};

std::string median_and_range(const std::vector<double>& values) {
  const bench::Spread s = bench::spread(values);
  return values.empty() ? "-" : fmt::format("{:.2f} ({:.2f} to {:.2f})", s.median, s.min, s.max);
}

void print_header(const engine::Llm& llm, const BenchFlags& flags, double peak) {
  fmt::print("{} ({}), {}, {} threads, KV {}, loaded in {:.2f} s; {} repetitions, median and range\n",
             llm.package().name, llm.package().type, backend::isa_name(flags.model.llm.device.isa),
             flags.model.llm.num_threads, flags.model.kv_type, llm.load_stats().seconds, flags.repetitions);
  fmt::print("the multipliers' peak is {:.0f} GOPS\n\n", peak / 1e9);
  fmt::print("{:>6} {:>5} {:>6}  {:<28}{:>7}  {:<28}{:>7}  {}\n", "prompt", "new", "batch", "prompt tokens/s",
             "% peak", "new tokens/s", "% read", "read GB/s");
}

void print_cell(const bench::SpeedOptions& cell, const bench::SpeedResult& result, double peak) {
  fmt::print("{:>6} {:>5} {:>6}  {:<28}{:>7.0f}  {:<28}{:>7.0f}  {:.1f}\n", cell.prompt_tokens,
             cell.new_tokens, cell.sequences, median_and_range(result.prompt_speed),
             100 * bench::multiply_fraction(result, peak), median_and_range(result.generation_speed),
             100 * bench::bandwidth_fraction(result), bench::spread(result.read_bandwidth).median / 1e9);
  std::fflush(stdout);
}

nlohmann::json cell_json(const bench::SpeedOptions& cell, const bench::SpeedResult& result) {
  return {
      {"prompt_tokens", cell.prompt_tokens},
      {"new_tokens", cell.new_tokens},
      {"sequences", cell.sequences},
      {"prompt_tokens_per_second", result.prompt_speed},
      {"generation_tokens_per_second", result.generation_speed},
      {"read_bytes_per_second", result.read_bandwidth},
      {"bytes_per_token", result.bytes_per_token},
      {"operations_per_prompt_token", result.operations_per_token},
  };
}

void print_json(const engine::Llm& llm, const BenchFlags& flags, double peak, const nlohmann::json& cells) {
  const nlohmann::json out = {
      {"model", llm.package().path},
      {"isa", backend::isa_name(flags.model.llm.device.isa)},
      {"threads", flags.model.llm.num_threads},
      {"kv_type", flags.model.kv_type},
      {"load_seconds", llm.load_stats().seconds},
      {"peak_operations_per_second", peak},
      {"peak_memory_bytes", peak_resident_memory()},
      {"cells", cells},
  };
  fmt::print("{}\n", out.dump());
}

Status start(BenchFlags& flags) {
  TERCET_ASSIGN(const std::string path, apply_model_flags(flags.model));
  engine::LlmOptions& llm_options = flags.model.llm;
  if (llm_options.context_length == 0)
    llm_options.context_length =
        *std::max_element(flags.prompts.begin(), flags.prompts.end()) + flags.new_tokens;
  llm_options.num_sequences = *std::max_element(flags.batches.begin(), flags.batches.end());
  if (llm_options.num_threads == 0) llm_options.num_threads = usable_cpus();
  TERCET_ASSIGN(const std::unique_ptr<engine::Llm> llm, load_model(path, llm_options));
  TERCET_TRY(llm->engine().warm_up());
  const double peak = bench::peak_operations(llm_options.device.isa, llm_options.num_threads);
  if (!flags.json) print_header(*llm, flags, peak);
  nlohmann::json cells = nlohmann::json::array();
  uint64_t first_id = 1;
  for (const int prompt : flags.prompts) {
    for (const int batch : flags.batches) {
      const bench::SpeedOptions cell{prompt, flags.new_tokens, batch, flags.repetitions};
      TERCET_ASSIGN(const bench::SpeedResult result, bench::measure_speed(*llm, cell, first_id));
      first_id += static_cast<uint64_t>(batch * flags.repetitions);
      cells.push_back(cell_json(cell, result));
      if (!flags.json) print_cell(cell, result, peak);
    }
  }
  if (flags.json) {
    print_json(*llm, flags, peak, cells);
  } else {
    fmt::print("\nmemory: {} at most, {} of it mapped files\n",
               format_bytes(static_cast<uint64_t>(peak_resident_memory())),
               format_bytes(static_cast<uint64_t>(resident_file_memory())));
  }
  return {};
}

}  // namespace

void add_bench_command(CLI::App& app, Action* action) {
  const auto flags = std::make_shared<BenchFlags>();
  CLI::App* command =
      app.add_subcommand("bench", "Measure speed: of a model, a server, kernels, tokenizers, the scheduler");
  add_model_flags(*command, flags->model);
  const auto number = [&](const char* names, auto& value, const char* help) {
    return command->add_option(names, value, help)
        ->check(CLI::Range(1, 1 << 20).description(""))
        ->type_name("N")
        ->capture_default_str();
  };
  number("-p,--prompt-tokens", flags->prompts, "lengths of prompts, as 1,512,4096")->delimiter(',');
  number("-n,--new-tokens", flags->new_tokens, "tokens to generate after it");
  number("-b,--batch", flags->batches, "prompts that run together, as 1,8")->delimiter(',');
  number("-r,--repetitions", flags->repetitions, "how often each is measured");
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
