#include "server/openai_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/parse_number.h"
#include "sample/params.h"

namespace tercet::server {
namespace {

using text::jinja::List;

constexpr int kMaxChoices = 128;
constexpr size_t kMaxPrompts = 1024;  // and answers to all of them
constexpr int kMaxLogprobs = 128;
constexpr int kCompletionTokens = 16;  // OpenAI's default for completions

Status check_range(const Fields& fields, const char* name, int value, int low, int high) {
  if (value >= low && value <= high) return {};
  return invalid(fields.name_of(name), fmt::format("is {}, expected {} to {}", value, low, high));
}

// What would change the answer and is not built must not be passed over.
Status refuse_unsupported(const Fields& fields) {
  constexpr const char* kUnsupported[] = {
      "guided_json",        "guided_regex",  "guided_choice", "guided_grammar",
      "structured_outputs", "json_schema",   "grammar",       "chat_template",
      "functions",          "function_call", "audio",         "prompt_embeds"};
  for (const char* name : kUnsupported) {
    if (fields.find(name) != nullptr) return Error{ErrorCode::kUnsupported, "is not supported", name};
  }
  bool beam_search = false;
  TERCET_TRY(fields.read("use_beam_search", beam_search));
  if (beam_search) return Error{ErrorCode::kUnsupported, "is not supported", "use_beam_search"};
  const Value* format = fields.find("response_format");
  if (format == nullptr) return {};
  if (format->dict() == nullptr) return wrong_type("response_format", "an object", *format);
  std::string type = "text";
  TERCET_TRY(Fields(*format, "response_format.").read("type", type));
  if (type == "text") return {};
  return Error{ErrorCode::kUnsupported, fmt::format("is {}, only text is supported", type),
               "response_format.type"};
}

Status read_logit_bias(const Fields& fields, core::SamplingParams& sampling) {
  const Value* bias = fields.find("logit_bias");
  if (bias == nullptr) return {};
  if (bias->dict() == nullptr) return wrong_type("logit_bias", "an object of token ids and numbers", *bias);
  for (const auto& [key, value] : bias->dict()->entries()) {
    const std::string& name = key.string()->bytes();
    const auto token = parse_number<core::TokenId>(name);
    if (!token) return invalid("logit_bias", fmt::format("has the key {}, expected a token id", name));
    float amount = 0;
    TERCET_TRY(Fields(*bias, "logit_bias.").read(name.c_str(), amount));
    sampling.logit_bias.emplace_back(*token, amount);
  }
  return {};
}

Status read_seed(const Fields& fields, core::SamplingParams& sampling) {
  const Value* seed = fields.find("seed");
  if (seed == nullptr) return {};
  const auto* whole = seed->get_if<int64_t>();
  if (whole == nullptr) return wrong_type("seed", "an integer of 64 bits", *seed);
  if (*whole != -1) sampling.seed = static_cast<uint64_t>(*whole);  // -1: llama.cpp's word for none
  return {};
}

Status read_sampling(const Fields& fields, const ServedModel& model, core::SamplingParams& sampling) {
  sampling = model.sampling;
  const std::pair<const char*, float*> floats[] = {{"temperature", &sampling.temperature},
                                                   {"top_p", &sampling.top_p},
                                                   {"min_p", &sampling.min_p},
                                                   {"typical_p", &sampling.typical_p},
                                                   {"repetition_penalty", &sampling.repetition_penalty},
                                                   {"repeat_penalty", &sampling.repetition_penalty},
                                                   {"presence_penalty", &sampling.presence_penalty},
                                                   {"frequency_penalty", &sampling.frequency_penalty}};
  for (const auto& [name, value] : floats) TERCET_TRY(fields.read(name, *value));
  TERCET_TRY(fields.read("top_k", sampling.top_k));
  TERCET_TRY(read_logit_bias(fields, sampling));
  return read_seed(fields, sampling);
}

Status read_stop(const Fields& fields, core::StopParams& stop) {
  TERCET_TRY(fields.read("max_tokens", stop.max_tokens));
  TERCET_TRY(fields.read("max_completion_tokens", stop.max_tokens));
  if (stop.max_tokens < -1)
    return invalid("max_tokens",
                   fmt::format("is {}, expected 0 or more, or -1 for no limit", stop.max_tokens));
  TERCET_TRY(fields.read("min_tokens", stop.min_tokens));
  const int most = stop.max_tokens < 0 ? 1 << 30 : stop.max_tokens;
  TERCET_TRY(check_range(fields, "min_tokens", stop.min_tokens, 0, most));
  TERCET_TRY(fields.read("ignore_eos", stop.ignore_eos));
  TERCET_TRY(fields.read("stop", stop.stop_strings));
  return fields.read("stop_token_ids", stop.stop_token_ids);
}

Status read_streaming(const Fields& fields, GenerationRequest& request) {
  TERCET_TRY(fields.read("stream", request.stream));
  const Value* options = fields.find("stream_options");
  if (options == nullptr) return {};
  if (options->dict() == nullptr) return wrong_type("stream_options", "an object", *options);
  if (!request.stream) return invalid("stream_options", "goes with stream: true only");
  const Fields inner(*options, "stream_options.");
  TERCET_TRY(inner.read("include_usage", request.include_usage));
  return inner.read("continuous_usage_stats", request.continuous_usage);
}

// Everything that completions and chat have in common.
Status read_common(const Fields& fields, const ServedModel& model, GenerationRequest& request) {
  TERCET_TRY(refuse_unsupported(fields));
  TERCET_TRY(fields.read("model", request.model));
  TERCET_TRY(read_sampling(fields, model, request.sampling));
  TERCET_TRY(read_stop(fields, request.stop));
  TERCET_TRY(fields.read("n", request.n));
  TERCET_TRY(check_range(fields, "n", request.n, 1, kMaxChoices));
  request.best_of = request.n;
  TERCET_TRY(fields.read("best_of", request.best_of));
  TERCET_TRY(check_range(fields, "best_of", request.best_of, request.n, kMaxChoices));
  TERCET_TRY(fields.read("priority", request.priority));
  TERCET_TRY(fields.read("cache_salt", request.cache_salt));
  TERCET_TRY(fields.read("return_token_ids", request.return_token_ids));
  TERCET_TRY(read_streaming(fields, request));
  if (request.stream && request.best_of > request.n)
    return invalid("best_of",
                   "the best answers are known only when all have ended: it must equal n in a stream");
  return {};
}

Status check_sampling(const GenerationRequest& request, const ServedModel& model) {
  TERCET_TRY(sample::validate(request.sampling, model.text.tokenizer.vocab_size()));
  for (const core::TokenId id : request.stop.stop_token_ids) {
    if (id >= model.text.tokenizer.vocab_size())
      return invalid("stop_token_ids", fmt::format("has token {}, the vocabulary has {}", id,
                                                   model.text.tokenizer.vocab_size()));
  }
  return {};
}

}  // namespace

Result<std::vector<Prompt>> read_prompts(const Fields& fields, const char* name, size_t most) {
  const Value* value = fields.find(name);
  if (value == nullptr) return invalid(name, "is missing");
  if (value->string() != nullptr) return std::vector<Prompt>{value->string()->bytes()};
  const List* list = value->list();
  if (list == nullptr) return wrong_type(name, "a string, token ids, or an array of these", *value);
  if (list->items.empty()) return invalid(name, "is an empty array");
  const bool batched = list->items[0].string() != nullptr || list->items[0].list() != nullptr;
  std::vector<Prompt> prompts;
  if (!batched) {
    TERCET_ASSIGN(std::vector<core::TokenId> tokens, token_ids(*value, name));
    prompts.emplace_back(std::move(tokens));
    return prompts;
  }
  if (list->items.size() > most)
    return invalid(name, fmt::format("has {} entries, at most {} are taken", list->items.size(), most));
  for (size_t i = 0; i < list->items.size(); ++i) {
    const Value& item = list->items[i];
    if (item.string() != nullptr) {
      prompts.emplace_back(item.string()->bytes());
      continue;
    }
    TERCET_ASSIGN(std::vector<core::TokenId> tokens, token_ids(item, fmt::format("{}[{}]", name, i)));
    prompts.emplace_back(std::move(tokens));
  }
  return prompts;
}

Result<GenerationRequest> parse_completion(const Value& body, const ServedModel& model) {
  const Fields fields(body);
  GenerationRequest request;
  request.stop.max_tokens = kCompletionTokens;
  TERCET_TRY(read_common(fields, model, request));
  TERCET_ASSIGN(request.prompts, read_prompts(fields, "prompt", kMaxPrompts));
  const size_t num_choices = request.prompts.size() * static_cast<size_t>(request.best_of);
  if (num_choices > kMaxPrompts)
    return invalid(request.best_of > request.n ? "best_of" : "n",
                   fmt::format("asks for {} answers to {} prompts, at most {} in all are given",
                               request.best_of, request.prompts.size(), kMaxPrompts));
  TERCET_TRY(fields.read("add_special_tokens", request.add_special_tokens));
  TERCET_TRY(fields.read("echo", request.echo));
  if (fields.find("suffix") != nullptr) TERCET_TRY(fields.read("suffix", request.suffix.emplace()));
  if (request.suffix && request.echo) return invalid("suffix", "does not go with echo");
  int& num_logprobs = request.sampling.num_logprobs;
  TERCET_TRY(fields.read("logprobs", num_logprobs));
  TERCET_TRY(check_range(fields, "logprobs", num_logprobs, -1, kMaxLogprobs));
  if (request.echo) request.sampling.num_prompt_logprobs = num_logprobs;
  if (request.stop.max_tokens == 0 && !request.echo)
    return invalid("max_tokens", "is 0, which leaves nothing to answer without echo");
  TERCET_TRY(check_sampling(request, model));
  return request;
}

Result<GenerationRequest> parse_chat(const Value& body, const ServedModel& model) {
  const Fields fields(body);
  GenerationRequest request;
  request.is_chat = true;
  TERCET_TRY(read_common(fields, model, request));
  TERCET_ASSIGN(request.chat, parse_chat_input(body));
  bool wants_logprobs = false;
  int num_top = 0;
  TERCET_TRY(fields.read("logprobs", wants_logprobs));
  TERCET_TRY(fields.read("top_logprobs", num_top));
  TERCET_TRY(check_range(fields, "top_logprobs", num_top, 0, kMaxLogprobs));
  if (num_top > 0 && !wants_logprobs) return invalid("top_logprobs", "goes with logprobs: true only");
  if (wants_logprobs) request.sampling.num_logprobs = num_top;
  if (request.stop.max_tokens == 0) return invalid("max_tokens", "is 0, expected at least 1");
  TERCET_TRY(check_sampling(request, model));
  return request;
}

}  // namespace tercet::server
