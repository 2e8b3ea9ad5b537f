// For tests: an exchange without a server, which keeps what it is answered. Safe from any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "http/message.h"

namespace tercet::http {

class TestExchange : public Exchange {
 public:
  explicit TestExchange(Request request) : request_(std::move(request)) {}

  const Request& request() const override { return request_; }
  void post(std::function<void()> task) override {
    const std::lock_guard lock(mutex_);
    task();
  }
  void respond(Response given) override {
    const std::lock_guard lock(mutex_);
    response_ = std::move(given);
    changed_.notify_all();
  }
  void start(Response head) override {
    const std::lock_guard lock(mutex_);
    head_ = std::move(head);
  }
  void send(std::string data) override {
    const std::lock_guard lock(mutex_);
    if (head_) head_->body += data;
    changed_.notify_all();
  }
  void finish() override {
    const std::lock_guard lock(mutex_);
    response_ = head_;
    changed_.notify_all();
  }
  void on_disconnect(std::function<void()> task) override {
    const std::lock_guard lock(mutex_);
    on_disconnect_ = std::move(task);
  }

  // The answer, when it is whole; nullopt when it does not come.
  std::optional<Response> wait() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(20), [this] { return response_.has_value(); });
    return response_;
  }
  // The stream so far, when there is some.
  std::string wait_for_data() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(20), [this] { return head_ && !head_->body.empty(); });
    return head_ ? head_->body : "";
  }
  void disconnect() {
    const std::lock_guard lock(mutex_);
    if (on_disconnect_) on_disconnect_();
  }

 private:
  Request request_;
  std::recursive_mutex mutex_;  // a task may answer
  std::condition_variable_any changed_;
  std::optional<Response> head_, response_;
  std::function<void()> on_disconnect_;
};

}  // namespace tercet::http
