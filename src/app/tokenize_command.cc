#include <CLI/CLI.hpp>
#include <iostream>
#include <iterator>
#include <memory>

#include "app/commands.h"
#include "app/environment.h"
#include "app/model_names.h"
#include "app/terminal.h"
#include "app/tokenize.h"
#include "base/file.h"

namespace tercet::app {
namespace {

// Flags as they are typed, besides those that go straight into the options.
struct TokenizeFlags {
  TokenizeOptions options;
  std::string prompt, prompt_file, chat_file, template_file, ids;
  bool no_bos = false, only_ids = false, json = false, jsonl = false;
};

std::string read_stdin() { return std::string(std::istreambuf_iterator<char>(std::cin), {}); }

Result<std::string> read_input(const std::string& path) {
  return path == "-" ? Result<std::string>(read_stdin()) : read_file(path);
}

Status start(TokenizeFlags& flags, const CLI::App& command) {
  TokenizeOptions& options = flags.options;
  const bool decodes = command.count("--decode") > 0;
  if (decodes) {
    options.input = TokenizeOptions::Input::kIds;
    options.text = flags.ids;
  } else if (command.count("--chat") > 0) {
    options.input = TokenizeOptions::Input::kChat;
    TERCET_ASSIGN(options.text, read_input(flags.chat_file));
  } else if (command.count("--file") > 0) {
    TERCET_ASSIGN(options.text, read_input(flags.prompt_file));
  } else if (command.count("--prompt") > 0) {
    options.text = flags.prompt;
  }
  const bool given = command.count("--prompt") + command.count("--file") + command.count("--chat") > 0;
  if (!given && (!decodes || flags.ids.empty())) {
    if (input_is_terminal())
      return Error{ErrorCode::kInvalidArgument, "nothing to tokenize; give -p, -f, --chat or stdin", {}};
    options.text = read_stdin();
  }
  if (!flags.template_file.empty()) {
    TERCET_ASSIGN(options.package.chat_template, read_file(flags.template_file));
  }
  options.add_special = !flags.no_bos;
  if (flags.jsonl) options.input = TokenizeOptions::Input::kLines;
  if (flags.only_ids) options.output = TokenizeOptions::Output::kIds;
  if (flags.json) options.output = TokenizeOptions::Output::kJson;
  TERCET_ASSIGN(options.path, resolve_model(options.path, models_folder()));
  return tokenize(options, std::cout);
}

}  // namespace

void add_tokenize_command(CLI::App& app, Action* action) {
  const auto flags = std::make_shared<TokenizeFlags>();
  TokenizeOptions& options = flags->options;
  CLI::App* command = app.add_subcommand("tokenize", "Show what a text or a conversation becomes");
  command->add_option("MODEL", options.path, "a model, a tokenizer.json, or a folder that holds one")
      ->required()
      ->type_name("");
  const auto text = [&](const char* names, std::string& value, const char* type, const char* help) {
    return command->add_option(names, value, help)->type_name(type);
  };
  auto* prompt = text("-p,--prompt", flags->prompt, "TEXT", "the text; without: from stdin");
  auto* file = text("-f,--file", flags->prompt_file, "FILE", "read the text from a file; -: stdin");
  auto* chat = text("--chat", flags->chat_file, "FILE", "messages or a chat request in JSON; -: stdin");
  auto* decode = text("--decode", flags->ids, "IDS", "the text of these ids; without IDS: those on stdin");
  decode->expected(0, 1);
  prompt->excludes(file)->excludes(chat)->excludes(decode);
  file->excludes(chat)->excludes(decode);
  chat->excludes(decode);
  text("--template", flags->template_file, "FILE", "a chat template, in place of the model's")->needs(chat);
  text("--pre-tokenizer", options.package.pre_tokenizer, "NAME", "in place of a GGUF file's");
  command->add_flag("--parse-special", options.parse_special, "special tokens in the text count");
  command->add_flag("--no-bos", flags->no_bos, "add no BOS or EOS");
  auto* ids = command->add_flag("--ids", flags->only_ids, "print the ids alone, in one line");
  command->add_flag("--json", flags->json, "print one JSON object")->excludes(ids);
  command->add_flag("--jsonl", flags->jsonl, "each line is JSON: a string becomes ids, an array of ids text")
      ->excludes(chat)
      ->excludes(decode);
  command->callback([=] { *action = [=] { return start(*flags, *command); }; });
}

}  // namespace tercet::app
