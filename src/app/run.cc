#include "app/run.h"

#include <fmt/format.h>

#include <memory>

#include "app/answer.h"
#include "app/chat.h"
#include "app/environment.h"
#include "app/interrupt.h"
#include "app/model_flags.h"
#include "app/progress.h"
#include "app/prompt.h"
#include "app/sampling_flags.h"
#include "app/terminal.h"
#include "base/log.h"

namespace tercet::app {
namespace {

void write_text(std::string_view text) {
  fmt::print("{}", text);
  std::fflush(stdout);
}

Result<ChatSettings> settings_of(const RunOptions& options, const engine::Llm& llm) {
  const model::Package& package = llm.package();
  ChatSettings settings{options.system, sampling_defaults(package.defaults), options.stop};
  for (const auto& [name, value] : options.sampling) TERCET_TRY(set_sampling(settings.sampling, name, value));
  settings.sampling.logit_bias = options.logit_bias;
  return settings;
}

void describe_model(const engine::Llm& llm, int context_length, const RunOptions& options) {
  const model::Package& package = llm.package();
  const std::string& note = llm.load_stats().context_note;
  fmt::print(stderr, "{} ({}, {}), context {} tokens{}{}{}, {} of KV, {}\n", package.name, package.type,
             format_bytes(static_cast<uint64_t>(package.weight_bytes)), context_length,
             note.empty() ? "" : " (", note, note.empty() ? "" : ")",
             format_bytes(static_cast<uint64_t>(llm.load_stats().kv_bytes)),
             backend::isa_name(options.llm.device.isa));
}

// One answer: the text or the JSON goes to stdout, everything else to stderr.
Status answer_prompt(const RunOptions& options, engine::Llm& llm, const ChatSettings& settings) {
  core::Request request;
  request.id = 1;
  request.sampling = settings.sampling;
  request.stop = settings.stop;
  if (options.raw || !llm.package().chat_template) {
    if (!options.raw) log_warning("the model has no chat template: the prompt is completed as it is");
    request.prompt = raw_prompt(llm.package().tokenizer, *options.prompt);
  } else {
    std::vector<Message> messages;
    if (!options.system.empty()) messages.push_back({"system", options.system});
    messages.push_back({"user", *options.prompt});
    TERCET_ASSIGN(request.prompt, chat_prompt(llm.package(), messages));
  }
  const auto on_text = [&](std::string_view text) {
    if (!options.json) write_text(text);
  };
  TERCET_ASSIGN(const Answer answer, generate(llm.engine(), request, on_text, take_interrupt));
  write_text(options.json ? to_json(answer) + "\n" : "\n");
  fmt::print(stderr, "\n{}", format_stats(answer));
  return {};
}

Status converse(const RunOptions& options, engine::Llm& llm, const ChatSettings& settings) {
  if (!llm.package().chat_template) {
    return Error{
        ErrorCode::kInvalidArgument,
        "the model has no chat template; complete a prompt with -p, or give a template with --template",
        options.path};
  }
  const auto render = [&](const std::vector<Message>& messages) {
    return chat_prompt(llm.package(), messages);
  };
  Chat chat({&llm.engine(), render, llm.engine().context_length()}, settings);
  const ChatOutput output{
      .text =
          [&](std::string_view text) {
            if (!options.json) write_text(text);
          },
      .notice = [](std::string_view notice) { fmt::print(stderr, "{}", notice); },
      .interrupted = take_interrupt,
  };
  TERCET_ASSIGN(Terminal terminal, Terminal::open(state_folder() + "/history"));
  fmt::print(stderr, "/help lists the commands; Ctrl-D leaves.\n");
  for (;;) {
    std::string input;
    const Terminal::Read read = terminal.read("> ", &input);
    if (read == Terminal::Read::kEnd) break;
    if (read == Terminal::Read::kInterrupted) {
      fmt::print("^C\n");
      continue;
    }
    const bool is_message = !input.empty() && !input.starts_with('/');
    const bool answers = is_message || input.starts_with("/regen");
    const Result<bool> handled = chat.handle(input, output);
    if (answers && handled.ok()) write_text(options.json ? to_json(*chat.last_answer()) + "\n" : "\n");
    if (!handled) fmt::print(stderr, "{}\n", handled.error().to_string());
    if (handled.ok() && !*handled) break;
  }
  if (chat.last_answer()) fmt::print(stderr, "\n{}", format_stats(*chat.last_answer()));
  return {};
}

}  // namespace

Status run(const RunOptions& options) {
  TERCET_ASSIGN(const std::unique_ptr<engine::Llm> llm, load_model(options.path, options.llm));
  TERCET_ASSIGN(const ChatSettings settings, settings_of(options, *llm));
  describe_model(*llm, llm->engine().context_length(), options);
  catch_interrupts();
  return options.prompt ? answer_prompt(options, *llm, settings) : converse(options, *llm, settings);
}

}  // namespace tercet::app
