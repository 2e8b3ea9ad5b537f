#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>

#include "app/commands.h"
#include "app/environment.h"
#include "app/model_names.h"
#include "app/pull.h"
#include "app/run.h"
#include "app/sampling_flags.h"
#include "app/terminal.h"
#include "base/file.h"
#include "base/log.h"

namespace tercet::app {
namespace {

const std::map<std::string, backend::KvType> kKvTypes = {{"f16", backend::KvType::kF16},
                                                         {"f32", backend::KvType::kF32}};

// Flags as they are typed, besides those that go straight into the options.
struct RunFlags {
  RunOptions options;
  std::string model;
  std::string prompt;
  std::string prompt_file;
  std::string template_file;
  std::string kv_type = "f16";
  std::string isa = "auto";
  std::map<std::string, std::string> sampling;
  std::vector<std::string> logit_bias;
  bool verbose = false;
};

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

void add_sampling_flags(CLI::App& command, RunFlags& flags) {
  const auto add = [&](std::string name, const std::string& help) {
    command.add_option("--" + name, flags.sampling[name], help)
        ->check([name](const std::string& text) {
          core::SamplingParams ignored;
          const Status set = set_sampling(ignored, name, text);
          return set.ok() ? std::string() : set.error().message;
        })
        ->type_name("X")
        ->group("Sampling, in place of the model's defaults");
  };
  for (const SamplingFlag& flag : sampling_flags()) add(std::string(flag.name), std::string(flag.help));
  add("seed", "a whole number: the same seed gives the same answer");
  command.add_option("--logit-bias", flags.logit_bias, "add X to the logit of a token; may be repeated")
      ->allow_extra_args(false)
      ->type_name("ID+X")
      ->check([](const std::string& text) {
        const auto bias = parse_logit_bias(text);
        return bias.ok() ? std::string() : bias.error().message;
      })
      ->group("Sampling, in place of the model's defaults");
}

void add_flags(CLI::App& command, RunFlags& flags) {
  RunOptions& options = flags.options;
  const auto number = [&](const char* names, int& value, int min, const char* help) {
    command.add_option(names, value, help)->check(CLI::Range(min, 1 << 30).description(""))->type_name("N");
  };
  const auto text = [&](const char* names, std::string& value, const char* type, const char* help) {
    return command.add_option(names, value, help)->type_name(type);
  };
  text("MODEL", flags.model, "", "a GGUF file, or a name that pull knows; without: the default model");
  auto* prompt =
      text("-p,--prompt", flags.prompt, "TEXT", "answer this and end; without: chat, or read stdin");
  text("-f,--file", flags.prompt_file, "FILE", "read the prompt from a file")->excludes(prompt);
  text("--system", options.system, "TEXT", "system message");
  text("--template", flags.template_file, "FILE", "a chat template, in place of the model's");
  command.add_flag("--raw", options.raw, "complete the prompt as it is, without a chat template");
  command.add_flag("--json", options.json, "print each answer as one line of JSON");
  number("-n,--max-tokens", options.stop.max_tokens, -1,
         "tokens of an answer; -1: until the context is full");
  command.add_option("--stop", options.stop.stop_strings, "end the answer before this text; may be repeated")
      ->allow_extra_args(false)
      ->type_name("TEXT");
  number("-c,--context", options.llm.context_length, 0, "tokens of prompt and answer; 0: as memory allows");
  number("-t,--threads", options.llm.num_threads, 0, "0: one for each usable core");
  text("--kv-type", flags.kv_type, "NAME", "type of the KV cache")->check(CLI::IsMember(names_of(kKvTypes)));
  text("--isa", flags.isa, "NAME", "instruction set of the kernels; the answer does not depend on it")
      ->check(CLI::IsMember(names_of(usable_isas())));
  command.add_flag("-v,--verbose", flags.verbose, "say more");
}

Result<std::string> model_path(const std::string& model) {
  if (!model.empty()) return resolve_model(model, models_folder());
  Result<std::string> path = resolve_model(std::string(kDefaultModel), models_folder());
  if (path.ok()) return path;
  fmt::print(stderr, "the default model {} is not here yet: fetching it\n", kDefaultModel);
  return pull({std::string(kDefaultModel), models_folder(), hub_endpoint(), hub_token(), false});
}

Status start(RunFlags& flags, bool has_prompt) {
  RunOptions& options = flags.options;
  if (flags.verbose) set_log_level(LogLevel::kDebug);
  if (has_prompt) options.prompt = flags.prompt;
  if (!flags.prompt_file.empty()) {
    TERCET_ASSIGN(options.prompt, read_file(flags.prompt_file));
  }
  if (!flags.template_file.empty()) {
    TERCET_ASSIGN(options.llm.package.chat_template, read_file(flags.template_file));
  }
  if (!options.prompt && !input_is_terminal()) {
    options.prompt = std::string(std::istreambuf_iterator<char>(std::cin), {});
  }
  if (!options.prompt && options.raw) {
    return Error{ErrorCode::kInvalidArgument, "needs a prompt, from -p, -f or stdin", "--raw"};
  }
  options.llm.kv_type = kKvTypes.at(flags.kv_type);
  options.llm.device.isa = usable_isas().at(flags.isa);
  for (const auto& [name, value] : flags.sampling) {
    if (!value.empty()) options.sampling.emplace_back(name, value);
  }
  for (const std::string& text : flags.logit_bias) {
    TERCET_ASSIGN(const auto bias, parse_logit_bias(text));
    options.logit_bias.push_back(bias);
  }
  TERCET_ASSIGN(options.path, model_path(flags.model));
  return run(options);
}

}  // namespace

void add_run_command(CLI::App& app, Action* action) {
  const auto flags = std::make_shared<RunFlags>();
  CLI::App* command = app.add_subcommand("run", "Chat in the terminal, or answer a prompt");
  add_flags(*command, *flags);
  add_sampling_flags(*command, *flags);
  command->callback([=] {
    const bool has_prompt = command->count("--prompt") > 0;
    *action = [=] { return start(*flags, has_prompt); };
  });
}

}  // namespace tercet::app
