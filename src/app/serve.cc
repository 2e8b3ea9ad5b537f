#include "app/serve.h"

#include <fmt/format.h>

#include <atomic>
#include <ctime>
#include <memory>
#include <thread>

#include "app/interrupt.h"
#include "app/progress.h"
#include "app/prompt.h"
#include "base/log.h"
#include "server/openai_api.h"

namespace tercet::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPoll{50};
// For the errors of requests that were cut to reach their clients.
constexpr std::chrono::milliseconds kLastWords{200};
constexpr std::chrono::seconds kSummaryPeriod{10};

server::ServedModel served_model(const engine::Llm& llm, const ServeOptions& options) {
  const model::Package& package = llm.package();
  server::ServedModel model{
      options.names, {package.tokenizer, package.chat_template, package.special_tokens}, {}, 0, 0, "",
      TERCET_VERSION};
  model.sampling = sampling_defaults(package.defaults);
  model.context_length = llm.engine().context_length();
  model.created = std::time(nullptr);
  model.pooling = package.pooling;
  model.embedding_size = llm.decoder().spec().dim;
  model.fingerprint = fmt::format("tercet-{}-kv-{}", TERCET_VERSION, options.kv_type);
  return model;
}

void announce(const engine::Llm& llm, const ServeOptions& options, int port) {
  const model::Package& package = llm.package();
  const std::string& note = llm.load_stats().context_note;
  const bool is_ipv6 = options.http.host.find(':') != std::string::npos;
  log_info("{} ({}, {}), context {} tokens{}, {} KV of {}, {} at once, on {}://{}{}{}:{}", package.name,
           package.type, format_bytes(static_cast<uint64_t>(package.weight_bytes)),
           llm.engine().context_length(), note.empty() ? "" : " (" + note + ")", options.kv_type,
           format_bytes(static_cast<uint64_t>(llm.load_stats().kv_bytes)), options.llm.num_sequences,
           options.http.tls_cert.empty() ? "http" : "https", is_ipv6 ? "[" : "", options.http.host,
           is_ipv6 ? "]" : "", port);
  const bool is_local =
      options.http.host.starts_with("127.") || options.http.host == "::1" || options.http.host == "localhost";
  if (options.api_keys.empty() && !is_local)
    log_warning("everybody who reaches {} may use the model: --api-key lets in those who know it",
                options.http.host);
}

// Until a signal comes.
void serve_until_signal(const server::EngineHost& host, const server::Metrics& metrics) {
  const auto totals = [&] {
    return ServerTotals{host.stats(), metrics.num_prompt_tokens(), metrics.num_generated_tokens()};
  };
  ServerTotals last = totals();
  auto last_time = Clock::now();
  while (!take_interrupt()) {
    std::this_thread::sleep_for(kPoll);
    if (Clock::now() - last_time < kSummaryPeriod) continue;
    const ServerTotals now = totals();
    const bool worked = now.num_generated_tokens != last.num_generated_tokens ||
                        now.num_prompt_tokens != last.num_prompt_tokens;
    const bool works = now.engine.num_running > 0 || now.engine.num_waiting > 0;
    const double seconds = std::chrono::duration<double>(Clock::now() - last_time).count();
    if (worked || works) log_info("{}", load_line(last, now, seconds));
    last = now;
    last_time = Clock::now();
  }
}

// Ends the host, at the latest after the timeout.
void drain(server::EngineHost& host, std::chrono::seconds timeout) {
  host.drain();
  if (host.idle()) return host.stop();
  log_info("draining: new requests are refused, running ones have {} s to end", timeout.count());
  const auto deadline = Clock::now() + timeout;
  while (!host.idle() && Clock::now() < deadline && !take_interrupt()) std::this_thread::sleep_for(kPoll);
  const bool cut = !host.idle();
  host.stop();
  if (!cut) return;
  log_warning("requests were still running and have been ended");
  std::this_thread::sleep_for(kLastWords);
}

}  // namespace

std::string load_line(const ServerTotals& before, const ServerTotals& now, double seconds) {
  const auto rate = [&](int64_t from, int64_t to) { return static_cast<double>(to - from) / seconds; };
  const int64_t looked_up = now.engine.num_prompt_tokens - before.engine.num_prompt_tokens;
  const int64_t found = now.engine.num_cached_tokens - before.engine.num_cached_tokens;
  std::string line = fmt::format(
      "{} running, {} waiting, KV {:.1f} % used, prompt {:.1f} tokens/s, generation {:.1f} tokens/s",
      now.engine.num_running, now.engine.num_waiting, 100 * now.engine.kv_usage,
      rate(before.num_prompt_tokens, now.num_prompt_tokens),
      rate(before.num_generated_tokens, now.num_generated_tokens));
  if (looked_up > 0)
    line += fmt::format(", prefix cache {:.1f} % hits",
                        100 * static_cast<double>(found) / static_cast<double>(looked_up));
  const int64_t preempted = now.engine.num_preemptions - before.engine.num_preemptions;
  if (preempted > 0) line += fmt::format(", {} preempted", preempted);
  return line;
}

Status serve(const ServeOptions& options) {
  log_info("loading {}", options.path);
  TERCET_ASSIGN(const std::unique_ptr<engine::Llm> llm, engine::Llm::load(options.path, options.llm));
  TERCET_TRY(llm->engine().warm_up());
  const server::ServedModel model = served_model(*llm, options);
  server::Metrics metrics(model.names.front());
  server::EngineHost host(llm->engine(), metrics);
  // The API shows how many connections the server has, which takes the API.
  std::atomic<const http::Server*> listening = nullptr;
  const auto num_connections = [&] {
    const http::Server* server = listening;
    return server == nullptr ? 0 : server->num_connections();
  };
  const server::ApiContext context{host, metrics, model, num_connections};
  catch_interrupts();
  catch_termination();
  TERCET_ASSIGN(const std::unique_ptr<http::Server> server,
                http::Server::start(options.http, http::route(api_routes(context), options.api_keys)));
  listening = server.get();
  announce(*llm, options, server->port());
  serve_until_signal(host, metrics);
  // Ends the host, whose sinks hold exchanges of the server.
  drain(host, options.drain_timeout);
  log_info("stopped");
  return {};
}

}  // namespace tercet::app
