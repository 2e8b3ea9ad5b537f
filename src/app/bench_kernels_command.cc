#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/model_flags.h"
#include "base/thread_pool.h"
#include "bench/kernel_speed.h"
#include "quant/packed.h"

namespace tercet::app {
namespace {

struct KernelFlags {
  bench::KernelOptions options;
  std::vector<std::string> types;
  std::string isa = "auto";
  bool json = false;
};

Result<std::vector<DType>> chosen_types(const std::vector<std::string>& names) {
  std::vector<DType> types;
  for (const std::string& name : names) {
    const auto type = dtype_from_name(name);
    if (!type) return Error{ErrorCode::kInvalidArgument, fmt::format("no tensor type is named {}", name), {}};
    types.push_back(*type);
  }
  if (!names.empty()) return types;
  types = {DType::kF32, DType::kF16, DType::kBF16};
  for (const DTypeInfo& info : dtype_table())
    if (quant::packed_layout(info.type) != nullptr) types.push_back(info.type);
  return types;
}

Status start(KernelFlags& flags) {
  bench::KernelOptions& options = flags.options;
  TERCET_ASSIGN(options.types, chosen_types(flags.types));
  options.isa = isa_of(flags.isa);
  if (options.num_threads == 0) options.num_threads = usable_cpus();
  if (options.rows.empty()) options.rows = {1, 2, 4, 5, 8, 16, 512};
  const double peak = bench::peak_operations(options.isa, options.num_threads);
  nlohmann::json list = nlohmann::json::array();
  if (!flags.json) {
    fmt::print("{}, {} threads, inputs {}; the multipliers' peak is {:.0f} GOPS\n\n",
               backend::isa_name(options.isa), options.num_threads, options.inputs, peak / 1e9);
    fmt::print("{:<10}{:>6}{:>12}{:>10}{:>10}{:>10}{:>10}\n", "type", "rows", "ms", "GB/s", "% read", "GOPS",
               "% peak");
  }
  TERCET_TRY(bench::measure_kernels(options, [&](const bench::KernelSpeed& speed) {
    const double read = speed.weight_bytes / speed.seconds, operations = speed.operations / speed.seconds;
    if (flags.json) {
      list.push_back({{"type", dtype_name(speed.type)},
                      {"rows", speed.rows},
                      {"seconds", speed.seconds},
                      {"weight_bytes_per_second", read},
                      {"read_bytes_per_second", speed.read_bandwidth},
                      {"operations_per_second", operations},
                      {"peak_operations_per_second", peak}});
      return;
    }
    fmt::print("{:<10}{:>6}{:>12.3f}{:>10.2f}{:>10.0f}{:>10.0f}{:>10.0f}\n", dtype_name(speed.type),
               speed.rows, speed.seconds * 1e3, read / 1e9, 100 * read / speed.read_bandwidth,
               operations / 1e9, 100 * operations / peak);
    std::fflush(stdout);
  }));
  if (flags.json) fmt::print("{}\n", list.dump());
  return {};
}

}  // namespace

void add_bench_kernels_command(CLI::App& bench, Action* action) {
  const auto flags = std::make_shared<KernelFlags>();
  CLI::App* command =
      bench.add_subcommand("kernels", "Measure linear layers of each type, for few and for many rows");
  command->add_option("--types", flags->types, "tensor types, as q4_K,bf16 (default: all)")->delimiter(',');
  command->add_option("--rows", flags->options.rows, "numbers of rows (default: 1,2,4,5,8,16,512)")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096).description(""));
  command->add_option("-t,--threads", flags->options.num_threads, "threads (default: one for each CPU)")
      ->check(CLI::Range(1, 1024).description(""));
  command->add_option("--inputs", flags->options.inputs, "inputs of a layer, a multiple of 256")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return std::atoi(text.c_str()) > 0 && std::atoi(text.c_str()) % 256 == 0
                       ? ""
                       : "not a multiple of 256";
          },
          ""))
      ->capture_default_str();
  add_isa_flag(*command, flags->isa);
  command->add_flag("--json", flags->json, "print JSON");
  command->callback([=] { *action = [=] { return start(*flags); }; });
}

}  // namespace tercet::app
