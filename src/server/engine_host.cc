#include "server/engine_host.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/log.h"

namespace tercet::server {

EngineHost::EngineHost(core::Generator& generator, Metrics& metrics)
    : generator_(generator), metrics_(metrics), thread_([this] { loop(); }) {}

EngineHost::~EngineHost() { stop(); }

std::vector<uint64_t> EngineHost::submit(std::vector<Submission> submissions) {
  std::vector<uint64_t> ids;
  std::unique_lock lock(mutex_);
  for (Submission& submission : submissions) ids.push_back(submission.request.id = next_id_++);
  if (draining_ || stopping_) {
    lock.unlock();
    for (const Submission& submission : submissions)
      submission.sink(Error{ErrorCode::kCancelled, "the server is shutting down", ""});
    return ids;
  }
  num_unfinished_ += static_cast<int>(submissions.size());
  std::ranges::move(submissions, std::back_inserter(commands_));
  wake_.notify_one();
  return ids;
}

void EngineHost::abort(uint64_t id) {
  const std::lock_guard lock(mutex_);
  core::Request request;
  request.id = id;
  commands_.push_back({std::move(request), {}});
  wake_.notify_one();
}

void EngineHost::drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
}

bool EngineHost::draining() const {
  const std::lock_guard lock(mutex_);
  return draining_ || stopping_;
}

bool EngineHost::idle() const {
  const std::lock_guard lock(mutex_);
  return num_unfinished_ == 0;
}

void EngineHost::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

core::GeneratorStats EngineHost::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void EngineHost::loop() {
  for (;;) {
    std::vector<Command> commands;
    {
      std::unique_lock lock(mutex_);
      stats_ = generator_.stats();
      num_unfinished_ = static_cast<int>(active_.size());
      for (const Command& command : commands_) num_unfinished_ += command.sink != nullptr;
      wake_.wait(lock, [&] { return stopping_ || !commands_.empty() || generator_.busy(); });
      if (stopping_) break;
      commands.swap(commands_);
    }
    for (Command& command : commands) apply(std::move(command));
    if (generator_.busy()) step();
  }
  fail_all({ErrorCode::kCancelled, "the server is shutting down", ""});
}

void EngineHost::apply(Command command) {
  const uint64_t id = command.request.id;
  if (!command.sink) return generator_.abort(id);
  const auto prompt_size = static_cast<int>(command.request.prompt.size());
  if (const Status added = generator_.add(std::move(command.request)); !added.ok()) {
    return command.sink(added.error());
  }
  active_.emplace(id, Active{std::move(command.sink), RequestTimes(prompt_size)});
}

void EngineHost::step() {
  Result<std::vector<core::TokenEvent>> events = generator_.step();
  if (!events.ok()) {
    log_error("a step failed: {}", events.error().to_string());
    return fail_all(events.error());
  }
  std::map<uint64_t, std::vector<core::TokenEvent>> by_request;
  for (core::TokenEvent& event : *events) by_request[event.request_id].push_back(std::move(event));
  for (auto& [id, of_request] : by_request) {
    const auto found = active_.find(id);
    if (found == active_.end()) continue;
    metrics_.observe(found->second.times, of_request);
    const bool ended = of_request.back().finish.has_value();
    found->second.sink(std::move(of_request));
    if (ended) active_.erase(found);
  }
}

void EngineHost::fail_all(const Error& error) {
  for (auto& [id, active] : active_) {
    generator_.abort(id);
    core::TokenEvent event;
    event.request_id = id;
    event.finish = core::FinishReason::kError;
    event.error = error.to_string();
    event.usage.emplace();
    active.sink(std::vector{std::move(event)});
  }
  active_.clear();
  std::vector<Command> commands;
  {
    const std::lock_guard lock(mutex_);
    commands.swap(commands_);
    num_unfinished_ = 0;
  }
  for (Command& command : commands) {
    if (command.sink) command.sink(error);
  }
}

}  // namespace tercet::server
