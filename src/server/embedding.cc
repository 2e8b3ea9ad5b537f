#include "server/embedding.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "server/answer_id.h"
#include "server/engine_requests.h"

namespace tercet::server {
namespace {

using Inputs = std::vector<std::vector<core::TokenId>>;

constexpr size_t kMaxInputs = 2048;  // OpenAI's
constexpr size_t kMaxAtOnce = 32;    // of one request's inputs in the engine

static_assert(std::endian::native == std::endian::little, "the API's base64 holds little-endian floats");

std::string base64(const std::vector<float>& vector) {
  const size_t size = vector.size() * sizeof(float);
  std::string text((size + 2) / 3 * 4 + 1, '\0');  // with the end of string that OpenSSL writes
  const int written =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(vector.data()), static_cast<int>(size));
  text.resize(static_cast<size_t>(written));
  return text;
}

// As doubles, so that a client reads the same numbers as from base64.
std::string numbers(const std::vector<float>& vector) {
  std::string text = "[";
  for (const float value : vector)
    fmt::format_to(std::back_inserter(text), "{}{}", text.size() > 1 ? "," : "", static_cast<double>(value));
  return text + "]";
}

// All methods but the constructor run on the exchange's thread.
class Embedding : public std::enable_shared_from_this<Embedding> {
 public:
  Embedding(std::shared_ptr<http::Exchange> exchange, EngineHost& host, Metrics& metrics,
            const ServedModel& model, EmbeddingRequest request, Inputs inputs)
      : exchange_(std::move(exchange)),
        host_(host),
        metrics_(metrics),
        model_(model),
        request_(std::move(request)),
        inputs_(std::move(inputs)),
        running_(inputs_.size()) {}

  void start();

 private:
  struct Running {
    uint64_t id = 0;  // 0: not submitted yet
    bool ended = false;
    std::vector<float> vector;
  };

  void submit_next();
  void on_events(size_t index, Result<std::vector<core::TokenEvent>> events);
  void end();
  void fail(const http::ApiError& error);
  void abort_all();
  std::string body() const;

  std::shared_ptr<http::Exchange> exchange_;
  EngineHost& host_;
  Metrics& metrics_;
  const ServedModel& model_;
  EmbeddingRequest request_;
  Inputs inputs_;
  std::vector<Running> running_;  // [inputs]
  size_t num_submitted_ = 0;
  size_t num_ended_ = 0;
  bool done_ = false;
};

void Embedding::start() {
  while (num_submitted_ < std::min(inputs_.size(), kMaxAtOnce)) submit_next();
  exchange_->on_disconnect([weak = weak_from_this()] {
    if (const auto self = weak.lock()) {
      self->done_ = true;
      self->abort_all();
    }
  });
}

void Embedding::submit_next() {
  const size_t index = num_submitted_++;
  core::Request request;
  request.prompt = inputs_[index];
  request.priority = request_.priority;
  request.cache_salt = request_.cache_salt;
  request.embedding = model_.pooling;
  const auto on_events = [self = shared_from_this(), index](size_t, auto events) {
    self->on_events(index, std::move(events));
  };
  running_[index].id = submit_for(exchange_, host_, {std::move(request)}, on_events).front();
}

void Embedding::on_events(size_t index, Result<std::vector<core::TokenEvent>> events) {
  if (done_) return;
  if (!events.ok()) return fail(http::api_error(events.error()));
  core::TokenEvent& event = events->back();
  if (!event.finish) return;
  if (const auto error = failure(event, host_)) return fail(*error);
  running_[index].ended = true;
  running_[index].vector = normalized(std::move(event.embedding), request_.dimensions);
  ++num_ended_;
  if (num_submitted_ < inputs_.size()) return submit_next();
  if (num_ended_ == inputs_.size()) end();
}

void Embedding::end() {
  done_ = true;
  http::Response response;
  response.body = body();
  exchange_->respond(std::move(response));
}

// Written here in part: as a JSON tree a few thousand vectors would take many times their size.
std::string Embedding::body() const {
  size_t num_tokens = 0;
  for (const auto& input : inputs_) num_tokens += input.size();
  std::string data;
  for (size_t i = 0; i < running_.size(); ++i) {
    const std::vector<float>& vector = running_[i].vector;
    const std::string value = request_.base64 ? '"' + base64(vector) + '"' : numbers(vector);
    fmt::format_to(std::back_inserter(data), R"({}{{"object":"embedding","index":{},"embedding":{}}})",
                   i > 0 ? "," : "", i, value);
  }
  const nlohmann::json name = model_.names.front();
  return fmt::format(R"({{"id":"{}","object":"list","created":{},"model":{},"data":[{}],)"
                     R"("usage":{{"prompt_tokens":{},"total_tokens":{}}}}})",
                     random_id("embd"), unix_time(),
                     name.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), data, num_tokens,
                     num_tokens);
}

void Embedding::fail(const http::ApiError& error) {
  done_ = true;
  abort_all();
  metrics_.count_refusal(error.status);
  exchange_->respond(http::error_response(error));
}

void Embedding::abort_all() {
  for (const Running& running : running_) {
    if (running.id != 0 && !running.ended) host_.abort(running.id);
  }
}

}  // namespace

Result<EmbeddingRequest> parse_embedding(const Value& body, const ServedModel& model) {
  const Fields fields(body);
  EmbeddingRequest request;
  TERCET_TRY(fields.read("model", request.model));
  if (!model.pooling)
    return Error{ErrorCode::kUnsupported,
                 "is pooled in a way that is not supported; there are the last token's and the mean",
                 "model"};
  TERCET_ASSIGN(request.inputs, read_prompts(fields, "input", kMaxInputs));
  std::string format = "float";
  TERCET_TRY(fields.read("encoding_format", format));
  if (format != "float" && format != "base64")
    return invalid("encoding_format", fmt::format("is {}, expected float or base64", format));
  request.base64 = format == "base64";
  if (fields.find("dimensions") != nullptr) {
    TERCET_TRY(fields.read("dimensions", request.dimensions));
    if (request.dimensions < 1 || request.dimensions > model.embedding_size)
      return invalid("dimensions",
                     fmt::format("is {}, expected 1 to {}", request.dimensions, model.embedding_size));
  }
  TERCET_TRY(fields.read("add_special_tokens", request.add_special_tokens));
  TERCET_TRY(fields.read("priority", request.priority));
  TERCET_TRY(fields.read("cache_salt", request.cache_salt));
  return request;
}

std::vector<float> normalized(std::vector<float> vector, int dimensions) {
  if (dimensions > 0) vector.resize(static_cast<size_t>(dimensions));
  double square = 0;
  for (const float value : vector) square += static_cast<double>(value) * value;
  if (square == 0) return vector;
  const double norm = std::sqrt(square);
  for (float& value : vector) value = static_cast<float>(value / norm);
  return vector;
}

void start_embedding(std::shared_ptr<http::Exchange> exchange, EngineHost& host, Metrics& metrics,
                     const ServedModel& model, EmbeddingRequest request, Inputs inputs) {
  const auto embedding =
      std::make_shared<Embedding>(exchange, host, metrics, model, std::move(request), std::move(inputs));
  exchange->post([embedding] { embedding->start(); });
}

}  // namespace tercet::server
