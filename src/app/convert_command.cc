#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "app/commands.h"
#include "app/environment.h"
#include "app/model_names.h"
#include "app/progress.h"
#include "model/convert.h"

namespace tercet::app {
namespace {

struct Options {
  std::string in, out, to, type, pre_tokenizer;
  uint64_t shard_bytes = 5'000'000'000;
};

Status convert(const Options& options) {
  TERCET_ASSIGN(const std::string path, resolve_model(options.in, models_folder()));
  TERCET_ASSIGN(const model::ModelFiles files, model::open_model_files(path));
  model::ConvertOptions convert;
  convert.pre_tokenizer = options.pre_tokenizer;
  convert.shard_bytes = options.shard_bytes;
  if (!options.type.empty()) {
    convert.type = dtype_from_name(options.type);
    if (!convert.type)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("\"{}\" is no type; known are f32, f16, bf16, q8_0, q4_0, q4_1, q5_0 and q5_1",
                               options.type),
                   "--type"};
  }
  Progress progress("convert", 0);
  convert.progress = [&](uint64_t done, uint64_t total) {
    progress.set_total(total);
    progress.update(done);
  };
  const bool to_gguf = options.to.empty() ? options.out.ends_with(".gguf") : options.to == "gguf";
  const auto report =
      to_gguf ? convert_to_gguf(files, options.out, convert) : convert_to_folder(files, options.out, convert);
  if (!report.ok()) return report.error();
  progress.finish();
  for (const std::string& note : report->notes) fmt::print(stderr, "note: {}\n", note);
  fmt::print(stderr, "{}: {} tensors, most of them {}, {}\n", options.out, report->tensors, report->type,
             format_bytes(report->bytes));
  return {};
}

}  // namespace

void add_convert_command(CLI::App& app, Action* action) {
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("convert", "Write a Hugging Face folder as GGUF, or a GGUF model as a folder");
  command->add_option("IN", options->in, "a folder with config.json and safetensors, a GGUF file, or a name")
      ->required();
  command->add_option("OUT", options->out, "the file, or the folder, which must not exist yet")->required();
  command->add_option("--to", options->to, "gguf or safetensors; default: gguf where OUT ends in .gguf")
      ->check(CLI::IsMember({"gguf", "safetensors"}));
  command->add_option("--type", options->type,
                      "type of the matrices: f32, f16, bf16, and for GGUF q8_0, q4_0, q4_1, q5_0, q5_1; "
                      "default: as they are, bf16 for a folder");
  command->add_option("--shard-size", options->shard_bytes, "largest .safetensors file, as 5GB")
      ->transform(CLI::AsSizeValue(true))
      ->capture_default_str();
  command->add_option("--pre-tokenizer", options->pre_tokenizer,
                      "tokenizer.ggml.pre of the GGUF file; default: recognised by what it does");
  command->callback([=] { *action = [options] { return convert(*options); }; });
}

}  // namespace tercet::app
