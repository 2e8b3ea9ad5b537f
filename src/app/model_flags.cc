#include "app/model_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>

#include "app/environment.h"
#include "app/model_names.h"
#include "app/progress.h"
#include "app/pull.h"
#include "base/log.h"

namespace tercet::app {
namespace {

const std::map<std::string, backend::KvType> kKvTypes = {
    {"f32", backend::KvType::kF32},       {"f16", backend::KvType::kF16},
    {"bf16", backend::KvType::kBF16},     {"int8", backend::KvType::kInt8},
    {"fp8_e4m3", backend::KvType::kE4M3}, {"fp8_e5m2", backend::KvType::kE5M2}};

std::map<std::string, backend::Isa> usable_isas() {
  std::map<std::string, backend::Isa> isas = {{"auto", backend::best_isa()}};
  for (const backend::Isa isa : backend::kAllIsas) {
    if (backend::isa_available(isa)) isas.emplace(backend::isa_name(isa), isa);
  }
  return isas;
}

std::vector<std::string> names_of(const auto& choices) {
  std::vector<std::string> names;
  for (const auto& [name, value] : choices) names.push_back(name);
  return names;
}

Result<std::string> model_path(const std::string& model) {
  if (!model.empty()) return resolve_model(model, models_folder());
  Result<std::string> path = resolve_model(std::string(kDefaultModel), models_folder());
  if (path.ok()) return path;
  fmt::print(stderr, "the default model {} is not here yet: fetching it\n", kDefaultModel);
  return pull({std::string(kDefaultModel), models_folder(), hub_endpoint(), hub_token(), false});
}

// Of a file, or of the files in a folder.
uint64_t bytes_at(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failed;
  uint64_t bytes = 0;
  if (!fs::is_directory(path, failed)) {
    bytes = fs::file_size(path, failed);
    return failed ? 0 : bytes;
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(path, failed)) {
    const uint64_t size = entry.is_regular_file(failed) ? entry.file_size(failed) : 0;
    bytes += failed ? 0 : size;
  }
  return bytes;
}

}  // namespace

void add_isa_flag(CLI::App& command, std::string& isa) {
  command.add_option("--isa", isa, "instruction set of the kernels; the answer does not depend on it")
      ->type_name("NAME")
      ->check(CLI::IsMember(names_of(usable_isas())));
}

backend::Isa isa_of(const std::string& flag) { return usable_isas().at(flag); }

void add_model_flags(CLI::App& command, ModelFlags& flags) {
  const auto number = [&](const char* names, int& value, const char* help) {
    command.add_option(names, value, help)->check(CLI::Range(0, 1 << 30).description(""))->type_name("N");
  };
  command
      .add_option("MODEL", flags.model, "a GGUF file, or a name that pull knows; without: the default model")
      ->type_name("");
  number("-c,--context,--ctx-size,--max-model-len", flags.llm.context_length,
         "tokens of prompt and answer; 0: as memory allows");
  number("-t,--threads", flags.llm.num_threads, "0: one for each usable core");
  command.add_flag("--pin", flags.llm.pin_threads, "keep each thread on a core of its own");
  command.add_option("--kv-type", flags.kv_type, "type of the KV cache")
      ->type_name("NAME")
      ->check(CLI::IsMember(names_of(kKvTypes)));
  command
      .add_option("--pre-tokenizer", flags.llm.package.pre_tokenizer,
                  "how the model splits text, where its file does not say")
      ->type_name("NAME");
  add_isa_flag(command, flags.isa);
  command.add_flag("-v,--verbose", flags.verbose, "say more");
}

Result<std::string> apply_model_flags(ModelFlags& flags) {
  if (flags.verbose) set_log_level(LogLevel::kDebug);
  flags.llm.kv_type = kKvTypes.at(flags.kv_type);
  flags.llm.device.isa = isa_of(flags.isa);
  return model_path(flags.model);
}

Result<std::unique_ptr<engine::Llm>> load_model(const std::string& path, const engine::LlmOptions& options) {
  const uint64_t bytes = bytes_at(path);
  Progress progress("loading", bytes);
  auto llm = engine::Llm::load(path, options, [&](int done, int total) {
    progress.update(bytes * static_cast<uint64_t>(done) / static_cast<uint64_t>(total));
  });
  progress.clear();
  return llm;
}

}  // namespace tercet::app
