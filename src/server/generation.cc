#include "server/generation.h"

#include <algorithm>
#include <utility>

#include "base/random.h"
#include "http/api_error.h"
#include "server/answer_id.h"
#include "server/engine_requests.h"
#include "server/openai_response.h"

namespace tercet::server {
namespace {

using Prompts = std::vector<std::vector<core::TokenId>>;

// All methods but the constructor run on the exchange's thread.
class Generation : public std::enable_shared_from_this<Generation> {
 public:
  Generation(std::shared_ptr<http::Exchange> exchange, EngineHost& host, Metrics& metrics,
             const ServedModel& model, GenerationRequest request, Prompts prompts)
      : exchange_(std::move(exchange)),
        host_(host),
        metrics_(metrics),
        request_(std::move(request)),
        prompts_(std::move(prompts)),
        writer_(request_, model, prompts_, random_id(request_.is_chat ? "chatcmpl" : "cmpl")) {}

  void submit_all();

 private:
  struct Running {
    Choice choice;
    uint64_t id = 0;
    bool begun = false;  // its first stream part is out
  };

  core::Request engine_request(int index) const;
  void on_events(int index, Result<std::vector<core::TokenEvent>> events);
  void stream_part(int index, Running& running);
  void send(std::string data);
  void end();
  void fail(const http::ApiError& error);
  void abort_all();
  core::Usage usage() const;
  http::Response head() const;
  std::vector<FinishedChoice> best_choices();

  std::shared_ptr<http::Exchange> exchange_;
  EngineHost& host_;
  Metrics& metrics_;
  GenerationRequest request_;
  Prompts prompts_;
  ResponseWriter writer_;
  std::vector<Running> running_;  // [prompts][best_of]
  bool streams_ = false;          // the stream's head is out
  bool done_ = false;
};

core::Request Generation::engine_request(int index) const {
  core::Request request;
  request.prompt = prompts_[static_cast<size_t>(index / request_.best_of)];
  request.sampling = request_.sampling;
  request.stop = request_.stop;
  request.priority = request_.priority;
  request.cache_salt = request_.cache_salt;
  const int choice = index % request_.best_of;
  // The first choice is what n = 1 gets.
  if (request.sampling.seed && choice > 0)
    request.sampling.seed = hash_seed(*request.sampling.seed, static_cast<uint64_t>(choice));
  if (request_.best_of > request_.n)
    request.sampling.num_logprobs = std::max(0, request.sampling.num_logprobs);
  return request;
}

void Generation::submit_all() {
  running_.resize(prompts_.size() * static_cast<size_t>(request_.best_of));
  std::vector<core::Request> requests;
  for (int index = 0; index < static_cast<int>(running_.size()); ++index)
    requests.push_back(engine_request(index));
  const auto ids = submit_for(exchange_, host_, std::move(requests),
                              [self = shared_from_this()](size_t index, auto events) {
                                self->on_events(static_cast<int>(index), std::move(events));
                              });
  for (size_t index = 0; index < ids.size(); ++index) running_[index].id = ids[index];
  exchange_->on_disconnect([weak = weak_from_this()] {
    if (const auto self = weak.lock()) {
      self->done_ = true;
      self->abort_all();
    }
  });
}

void Generation::on_events(int index, Result<std::vector<core::TokenEvent>> events) {
  if (done_) return;
  if (!events.ok()) return fail(http::api_error(events.error()));
  Running& running = running_[static_cast<size_t>(index)];
  for (core::TokenEvent& event : *events) {
    if (const auto error = failure(event, host_)) return fail(*error);
    running.choice.push(std::move(event));
  }
  if (request_.stream) stream_part(index, running);
  if (std::ranges::all_of(running_, [](const Running& each) { return each.choice.ended(); })) end();
}

void Generation::stream_part(int index, Running& running) {
  // Log-probabilities of the echoed prompt go out together, with the first token.
  if (!running.choice.ended() && running.choice.num_tokens() == 0) return;
  ChoicePart part = running.choice.take();
  if (!request_.return_token_ids) part.token_ids.clear();
  core::Usage counted;
  if (request_.continuous_usage) counted = usage();
  const core::Usage* shown = request_.continuous_usage ? &counted : nullptr;
  std::string data;
  if (!std::exchange(running.begun, true)) data = writer_.first_part(index, shown);
  if (!part.empty() || shown != nullptr) data += writer_.part(index, running.choice, part, shown);
  send(std::move(data));
}

void Generation::send(std::string data) {
  if (data.empty()) return;
  if (!std::exchange(streams_, true)) exchange_->start(head());
  exchange_->send(std::move(data));
}

http::Response Generation::head() const {
  http::Response response;
  response.headers.emplace_back("X-Request-Id", writer_.id());
  if (!request_.stream) return response;
  response.content_type = "text/event-stream; charset=utf-8";
  response.headers.emplace_back("Cache-Control", "no-cache");
  response.headers.emplace_back("X-Accel-Buffering", "no");  // for nginx in between
  return response;
}

// [prompts][n]: of each prompt's answers the most likely ones, best first; all of them, in order, where none
// has to go.
std::vector<FinishedChoice> Generation::best_choices() {
  std::vector<FinishedChoice> chosen;
  const auto best_of = static_cast<size_t>(request_.best_of);
  for (size_t prompt = 0; prompt < prompts_.size(); ++prompt) {
    std::vector<Running*> candidates;
    for (size_t i = 0; i < best_of; ++i) candidates.push_back(&running_[prompt * best_of + i]);
    if (request_.n < request_.best_of)
      std::ranges::stable_sort(candidates, [](const Running* a, const Running* b) {
        return a->choice.mean_logprob() > b->choice.mean_logprob();
      });
    for (int i = 0; i < request_.n; ++i) {
      Choice& choice = candidates[static_cast<size_t>(i)]->choice;
      chosen.push_back({&choice, choice.take(), static_cast<int>(prompt)});
    }
  }
  return chosen;
}

void Generation::end() {
  done_ = true;
  if (request_.stream) {
    std::string data;
    if (request_.include_usage) data = writer_.usage_part(usage());
    send(data + "data: [DONE]\n\n");
    return exchange_->finish();
  }
  http::Response response = head();
  response.body = writer_.body(best_choices(), usage());
  exchange_->respond(std::move(response));
}

// Before the stream's head is out the error is the answer; afterwards it is the stream's last event.
void Generation::fail(const http::ApiError& error) {
  done_ = true;
  abort_all();
  metrics_.count_refusal(error.status);
  if (!streams_) return exchange_->respond(http::error_response(error));
  exchange_->send("data: " + http::error_body(error) + "\n\n");
  exchange_->finish();
}

void Generation::abort_all() {
  for (const Running& running : running_) {
    if (!running.choice.ended()) host_.abort(running.id);
  }
}

// A prompt counts once, whatever the number of its answers.
core::Usage Generation::usage() const {
  core::Usage total;
  const auto best_of = static_cast<size_t>(request_.best_of);
  for (size_t prompt = 0; prompt < prompts_.size(); ++prompt) {
    total.num_prompt_tokens += static_cast<int>(prompts_[prompt].size());
    total.num_cached_tokens += running_[prompt * best_of].choice.usage().num_cached_tokens;
  }
  for (const Running& running : running_) total.num_output_tokens += running.choice.num_tokens();
  return total;
}

}  // namespace

void start_generation(std::shared_ptr<http::Exchange> exchange, EngineHost& host, Metrics& metrics,
                      const ServedModel& model, GenerationRequest request, Prompts prompts) {
  const auto generation =
      std::make_shared<Generation>(exchange, host, metrics, model, std::move(request), std::move(prompts));
  exchange->post([generation] { generation->submit_all(); });
}

}  // namespace tercet::server
