#include "server/openai_api.h"

#include <memory>
#include <string>

#include "http/api_error.h"
#include "server/embedding.h"
#include "server/generation.h"
#include "server/openai_response.h"
#include "server/prompts.h"

namespace tercet::server {
namespace {

using ExchangePtr = std::shared_ptr<http::Exchange>;

http::Response json_response(std::string body) {
  http::Response response;
  response.body = std::move(body);
  return response;
}

void refuse(http::Exchange& exchange, const ApiContext& context, const http::ApiError& error) {
  context.metrics.count_refusal(error.status);
  exchange.respond(http::error_response(error));
}

void generate(const ExchangePtr& exchange, const ApiContext& context, bool is_chat) {
  const auto body = parse_object(exchange->request().body);
  if (!body.ok()) return refuse(*exchange, context, http::api_error(body.error()));
  auto request = is_chat ? parse_chat(*body, context.model) : parse_completion(*body, context.model);
  if (!request.ok()) return refuse(*exchange, context, http::api_error(request.error()));
  if (const auto error = check_model(request->model, context.model))
    return refuse(*exchange, context, *error);
  auto prompts = encode_prompts(*request, context.model);
  if (!prompts.ok()) return refuse(*exchange, context, http::api_error(prompts.error()));
  const int room = request->stop.max_tokens == 0 ? 0 : 1;
  if (const auto error = check_prompts(*prompts, context.model, room, is_chat ? "messages" : "prompt"))
    return refuse(*exchange, context, *error);
  start_generation(exchange, context.host, context.metrics, context.model, *std::move(request),
                   *std::move(prompts));
}

void embed(const ExchangePtr& exchange, const ApiContext& context) {
  const auto body = parse_object(exchange->request().body);
  if (!body.ok()) return refuse(*exchange, context, http::api_error(body.error()));
  auto request = parse_embedding(*body, context.model);
  if (!request.ok()) return refuse(*exchange, context, http::api_error(request.error()));
  if (const auto error = check_model(request->model, context.model))
    return refuse(*exchange, context, *error);
  std::vector<std::vector<core::TokenId>> inputs;
  for (const Prompt& input : request->inputs)
    inputs.push_back(encode_prompt(input, context.model, request->add_special_tokens));
  if (const auto error = check_prompts(inputs, context.model, 0, "input"))
    return refuse(*exchange, context, *error);
  start_embedding(exchange, context.host, context.metrics, context.model, *std::move(request),
                  std::move(inputs));
}

// vLLM's body has "prompt" or "messages", llama.cpp's "content".
Result<std::string> tokenize(const std::string& text, const ServedModel& model) {
  TERCET_ASSIGN(const Value body, parse_object(text));
  const Fields fields(body);
  bool with_texts = false;
  TERCET_TRY(fields.read("return_token_strs", with_texts));
  if (fields.find("messages") != nullptr) {
    TERCET_ASSIGN(text::ChatInput input, parse_chat_input(body));
    TERCET_ASSIGN(const auto tokens, encode_chat(std::move(input), model));
    return tokenize_body(tokens, model, with_texts);
  }
  std::string prompt;
  bool add_special = fields.find("prompt") != nullptr;  // llama.cpp adds none unless asked
  if (!add_special && fields.find("content") == nullptr)
    return Error{ErrorCode::kInvalidArgument, "is missing", "prompt"};
  TERCET_TRY(fields.read("prompt", prompt));
  TERCET_TRY(fields.read("content", prompt));
  TERCET_TRY(fields.read("add_special_tokens", add_special));
  TERCET_TRY(fields.read("add_special", add_special));
  const auto tokens =
      model.text.tokenizer.encode(prompt, {.add_special = add_special, .parse_special = true});
  return tokenize_body(tokens, model, with_texts);
}

Result<std::string> detokenize(const std::string& text, const ServedModel& model) {
  TERCET_ASSIGN(const Value body, parse_object(text));
  const Fields fields(body);
  if (fields.find("tokens") == nullptr) return Error{ErrorCode::kInvalidArgument, "is missing", "tokens"};
  std::vector<core::TokenId> tokens;
  TERCET_TRY(fields.read("tokens", tokens));
  return detokenize_body(model.text.tokenizer.decode(tokens));
}

void respond(http::Exchange& exchange, const ApiContext& context, Result<std::string> body) {
  if (!body.ok()) return refuse(exchange, context, http::api_error(body.error()));
  exchange.respond(json_response(*std::move(body)));
}

void health(const ExchangePtr& exchange, const ApiContext& context) {
  const bool draining = context.host.draining();
  http::Response response = json_response(draining ? R"({"status":"draining"})" : R"({"status":"ok"})");
  if (draining) response.status = 503;
  exchange->respond(std::move(response));
}

void metrics(const ExchangePtr& exchange, const ApiContext& context) {
  http::Response response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = context.metrics.render(context.host.stats(), context.num_connections());
  exchange->respond(std::move(response));
}

void one_model(const ExchangePtr& exchange, const ApiContext& context) {
  const std::string name = exchange->request().path.substr(std::string_view("/v1/models/").size());
  if (const auto error = check_model(name, context.model)) return refuse(*exchange, context, *error);
  exchange->respond(json_response(model_body(context.model, name)));
}

}  // namespace

std::vector<http::Route> api_routes(const ApiContext& context) {
  return {
      {"POST", "/v1/completions", [=](const ExchangePtr& exchange) { generate(exchange, context, false); }},
      {"POST", "/v1/chat/completions",
       [=](const ExchangePtr& exchange) { generate(exchange, context, true); }},
      {"POST", "/v1/embeddings", [=](const ExchangePtr& exchange) { embed(exchange, context); }},
      {"GET", "/v1/models",
       [=](const ExchangePtr& exchange) { exchange->respond(json_response(models_body(context.model))); }},
      {"GET", "/v1/models/*", [=](const ExchangePtr& exchange) { one_model(exchange, context); }},
      {"POST", "/tokenize",
       [=](const ExchangePtr& exchange) {
         respond(*exchange, context, tokenize(exchange->request().body, context.model));
       }},
      {"POST", "/detokenize",
       [=](const ExchangePtr& exchange) {
         respond(*exchange, context, detokenize(exchange->request().body, context.model));
       }},
      {"GET", "/tokenizer_info",
       [=](const ExchangePtr& exchange) {
         exchange->respond(json_response(tokenizer_info_body(context.model)));
       }},
      {"GET", "/health", [=](const ExchangePtr& exchange) { health(exchange, context); }, true},
      {"GET", "/version",
       [=](const ExchangePtr& exchange) {
         exchange->respond(json_response("{\"version\":\"" + context.model.version + "\"}"));
       }},
      {"GET", "/metrics", [=](const ExchangePtr& exchange) { metrics(exchange, context); }},
  };
}

}  // namespace tercet::server
