#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>

#include "app/commands.h"
#include "app/model_flags.h"
#include "app/run.h"
#include "app/sampling_flags.h"
#include "app/terminal.h"
#include "base/file.h"

namespace tercet::app {
namespace {

// Flags as they are typed, besides those that go straight into the options.
struct RunFlags {
  RunOptions options;
  ModelFlags model;
  std::string prompt;
  std::string prompt_file;
  std::string template_file;
  std::map<std::string, std::string> sampling;
  std::vector<std::string> logit_bias;
};

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
  command
      .add_option("--logit-bias", flags.logit_bias,
                  "add X to the logit of a token, -100 bans it; may be repeated")
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
  const auto text = [&](const char* names, std::string& value, const char* type, const char* help) {
    return command.add_option(names, value, help)->type_name(type);
  };
  add_model_flags(command, flags.model);
  auto* prompt =
      text("-p,--prompt", flags.prompt, "TEXT", "answer this and end; without: chat, or read stdin");
  text("-f,--file", flags.prompt_file, "FILE", "read the prompt from a file")->excludes(prompt);
  text("--system", options.system, "TEXT", "system message");
  text("--template", flags.template_file, "FILE", "a chat template, in place of the model's");
  command.add_flag("--raw", options.raw, "complete the prompt as it is, without a chat template");
  command.add_flag("--json", options.json, "print each answer as one line of JSON");
  command
      .add_option("-n,--max-tokens", options.stop.max_tokens,
                  "tokens of an answer; -1: until the context is full")
      ->check(CLI::Range(-1, 1 << 30).description(""))
      ->type_name("N");
  command.add_option("--stop", options.stop.stop_strings, "end the answer before this text; may be repeated")
      ->allow_extra_args(false)
      ->type_name("TEXT");
}

Status start(RunFlags& flags, bool has_prompt) {
  RunOptions& options = flags.options;
  if (has_prompt) options.prompt = flags.prompt;
  if (!flags.prompt_file.empty()) {
    TERCET_ASSIGN(options.prompt, read_file(flags.prompt_file));
  }
  if (!flags.template_file.empty()) {
    TERCET_ASSIGN(flags.model.llm.package.chat_template, read_file(flags.template_file));
  }
  if (!options.prompt && !input_is_terminal()) {
    options.prompt = std::string(std::istreambuf_iterator<char>(std::cin), {});
  }
  if (!options.prompt && options.raw) {
    return Error{ErrorCode::kInvalidArgument, "needs a prompt, from -p, -f or stdin", "--raw"};
  }
  for (const auto& [name, value] : flags.sampling) {
    if (!value.empty()) options.sampling.emplace_back(name, value);
  }
  for (const std::string& text : flags.logit_bias) {
    TERCET_ASSIGN(const auto bias, parse_logit_bias(text));
    options.logit_bias.push_back(bias);
  }
  TERCET_ASSIGN(options.path, apply_model_flags(flags.model));
  options.llm = flags.model.llm;
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
