#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/environment.h"
#include "app/model_names.h"
#include "base/file.h"
#include "bench/speed.h"
#include "bench/tokenize_speed.h"
#include "model/package_text.h"

namespace tercet::app {
namespace {

struct TokenizeBenchFlags {
  std::string model, file;
  int repetitions = 5, megabytes = 1;
  bool json = false;
};

Result<std::vector<text::SampleText>> texts_of(const TokenizeBenchFlags& flags) {
  if (flags.file.empty()) return text::sample_texts(static_cast<size_t>(flags.megabytes) << 20);
  TERCET_ASSIGN(std::string text, read_file(flags.file));
  if (text.empty()) return Error{ErrorCode::kInvalidArgument, "is empty", flags.file};
  return std::vector<text::SampleText>{{flags.file, std::move(text)}};
}

void print_table(const std::vector<bench::TokenizeSpeed>& speeds) {
  fmt::print("{:<16}{:>10}{:>10}{:>10}{:>12}\n", "MB/s", "median", "least", "most", "tokens");
  for (const bench::TokenizeSpeed& speed : speeds) {
    const bench::Spread s = bench::spread(speed.bytes_per_second);
    fmt::print("{:<16}{:>10.2f}{:>10.2f}{:>10.2f}{:>12}\n", speed.name, s.median / 1e6, s.min / 1e6,
               s.max / 1e6, speed.tokens);
  }
}

void print_json(const std::vector<bench::TokenizeSpeed>& speeds) {
  nlohmann::json out = nlohmann::json::array();
  for (const bench::TokenizeSpeed& speed : speeds) {
    out.push_back({{"text", speed.name},
                   {"bytes", speed.bytes},
                   {"tokens", speed.tokens},
                   {"bytes_per_second", speed.bytes_per_second}});
  }
  fmt::print("{}\n", out.dump());
}

Status start(const TokenizeBenchFlags& flags) {
  TERCET_ASSIGN(const std::string path, resolve_model(flags.model, models_folder()));
  TERCET_ASSIGN(const text::ModelText model, model::open_text(path));
  TERCET_ASSIGN(const std::vector<text::SampleText> texts, texts_of(flags));
  const auto speeds = bench::measure_tokenizer(model.tokenizer, texts, flags.repetitions);
  flags.json ? print_json(speeds) : print_table(speeds);
  return {};
}

}  // namespace

void add_bench_tokenize_command(CLI::App& bench, Action* action) {
  const auto flags = std::make_shared<TokenizeBenchFlags>();
  CLI::App* command = bench.add_subcommand("tokenize", "Measure how fast text becomes tokens, on one thread");
  command->add_option("MODEL", flags->model, "as in tercet tokenize")->required()->type_name("");
  command->add_option("-f,--file", flags->file, "measure this text, not made-up ones")->type_name("FILE");
  const auto number = [&](const char* names, int& value, const char* help) {
    command->add_option(names, value, help)
        ->check(CLI::Range(1, 1 << 10).description(""))
        ->type_name("N")
        ->capture_default_str();
  };
  number("-s,--size", flags->megabytes, "MiB of each made-up text");
  number("-r,--repetitions", flags->repetitions, "how often each is measured");
  command->add_flag("--json", flags->json, "print the values of every repetition as JSON");
  command->callback([=] { *action = [=] { return start(*flags); }; });
}

}  // namespace tercet::app
