#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "app/commands.h"
#include "app/environment.h"
#include "app/model_flags.h"
#include "app/policy_flag.h"
#include "app/serve.h"
#include "base/file.h"
#include "base/log.h"

namespace tercet::app {
namespace {

constexpr int kDefaultSequences = 32;

// Flags as they are typed, besides those that go straight into the options.
struct ServeFlags {
  ServeOptions options;
  ModelFlags model;
  std::string template_file;
  int drain_seconds = 30;
  int max_body_megabytes = 16;
  bool log_json = false;
};

void add_flags(CLI::App& command, ServeFlags& flags) {
  ServeOptions& options = flags.options;
  engine::LlmOptions& llm = flags.model.llm;
  const auto number = [&](const char* names, int& value, int least, const char* help) {
    command.add_option(names, value, help)
        ->check(CLI::Range(least, 1 << 30).description(""))
        ->type_name("N")
        ->capture_default_str();
  };
  const auto text = [&](const char* names, auto& value, const char* type, const char* help) {
    return command.add_option(names, value, help)->type_name(type);
  };
  llm.num_sequences = kDefaultSequences;
  llm.policy = sched::Policy::kPriority;
  add_model_flags(command, flags.model);
  text("--host", options.http.host, "ADDRESS", "0.0.0.0 for every network")->capture_default_str();
  command.add_option("--port", options.http.port, "0: one that is free")
      ->type_name("N")
      ->capture_default_str();
  text("--api-key", options.api_keys, "KEY", "let in only who gives it; may be repeated (or TERCET_API_KEY)")
      ->allow_extra_args(false);
  text("--served-model-name,-a,--alias", options.names, "NAME",
       "the model's name in the API; may be repeated")
      ->allow_extra_args(false);
  text("--template,--chat-template-file", flags.template_file, "FILE",
       "a chat template, in place of the model's");
  number("--parallel,--max-num-seqs,--np", llm.num_sequences, 1, "requests that run at once");
  add_policy_flag(command, llm.policy);
  number("--max-queue", llm.max_queue, 1, "requests that wait; further ones get 429");
  number("--kv-tokens", llm.num_kv_tokens, 0, "tokens that the KV cache holds; 0: as memory allows");
  number("--prefill-chunk,--max-num-batched-tokens", llm.prefill_chunk, 1, "tokens of prompts in one step");
  text("--cors-origin", options.http.cors_origins, "ORIGIN",
       "pages of this origin may use the API, * of all; may be repeated")
      ->allow_extra_args(false);
  auto* cert = text("--tls-cert,--ssl-cert-file,--ssl-certfile", options.http.tls_cert, "FILE",
                    "certificate chain in PEM form, for https");
  auto* key = text("--tls-key,--ssl-key-file,--ssl-keyfile", options.http.tls_key, "FILE", "its private key");
  cert->needs(key);
  key->needs(cert);
  number("--max-connections", options.http.max_connections, 1, "connections at once");
  number("--max-body", flags.max_body_megabytes, 1, "MB of a request");
  number("--drain-timeout", flags.drain_seconds, 0, "seconds that running requests have after SIGTERM");
  command.add_flag("--log-json", flags.log_json, "log lines as JSON objects");
}

Status start(ServeFlags& flags) {
  ServeOptions& options = flags.options;
  set_log_format(flags.log_json ? LogFormat::kJson : LogFormat::kTimed);
  if (!flags.template_file.empty()) {
    TERCET_ASSIGN(flags.model.llm.package.chat_template, read_file(flags.template_file));
  }
  TERCET_ASSIGN(options.path, apply_model_flags(flags.model));
  if (options.names.empty()) options.names.push_back(std::filesystem::path(options.path).stem().string());
  if (const std::string key = api_key(); !key.empty()) options.api_keys.push_back(key);
  options.llm = flags.model.llm;
  options.kv_type = flags.model.kv_type;
  options.http.max_body_bytes = static_cast<uint64_t>(flags.max_body_megabytes) << 20;
  options.drain_timeout = std::chrono::seconds(flags.drain_seconds);
  return serve(options);
}

}  // namespace

void add_serve_command(CLI::App& app, Action* action) {
  const auto flags = std::make_shared<ServeFlags>();
  CLI::App* command = app.add_subcommand("serve", "Serve a model through the OpenAI API");
  add_flags(*command, *flags);
  command->callback([=] { *action = [=] { return start(*flags); }; });
}

}  // namespace tercet::app
