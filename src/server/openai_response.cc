#include "server/openai_response.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "server/answer_id.h"
#include "text/unicode.h"

namespace tercet::server {
namespace {

using Object = nlohmann::ordered_json;

std::string dump(const Object& object) {
  return object.dump(-1, ' ', false, Object::error_handler_t::replace);
}
std::string event(const Object& object) { return "data: " + dump(object) + "\n\n"; }

int64_t count_chars(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

// As the completions API writes bytes that are no whole characters, so that no two tokens look alike.
std::string token_text(const text::Tokenizer& tokenizer, core::TokenId token) {
  const std::string_view bytes = tokenizer.piece(token);
  if (text::is_valid_utf8(bytes)) return std::string(bytes);
  std::string escaped = "bytes:";
  for (const char byte : bytes) escaped += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return escaped;
}

Object finish_name(std::optional<core::FinishReason> reason) {
  if (!reason) return nullptr;
  return *reason == core::FinishReason::kLength ? "length" : "stop";
}

Object usage_json(const core::Usage& usage) {
  return {{"prompt_tokens", usage.num_prompt_tokens},
          {"completion_tokens", usage.num_output_tokens},
          {"total_tokens", usage.num_prompt_tokens + usage.num_output_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.num_cached_tokens}}}};
}

Object chat_token(const text::Tokenizer& tokenizer, const core::TokenLogprob& token) {
  const std::string_view bytes = tokenizer.piece(token.token);
  Object list = Object::array();
  for (const char byte : bytes) list.push_back(static_cast<unsigned char>(byte));
  return {{"token", text::replace_invalid_sequences(bytes)}, {"logprob", token.logprob}, {"bytes", list}};
}

Object chat_logprobs(const text::Tokenizer& tokenizer, const std::vector<ShownToken>& tokens) {
  Object content = Object::array();
  for (const ShownToken& token : tokens) {
    Object entry = chat_token(tokenizer, token.logprobs.chosen);
    entry["top_logprobs"] = Object::array();
    for (const core::TokenLogprob& other : token.logprobs.top)
      entry["top_logprobs"].push_back(chat_token(tokenizer, other));
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

// The four parallel lists of the completions API.
struct CompletionLogprobs {
  explicit CompletionLogprobs(const text::Tokenizer& of) : tokenizer(of) {}

  void add(core::TokenId token, int64_t offset, const core::TokenLogprobs* logprobs) {
    offsets.push_back(offset);
    tokens.push_back(token_text(tokenizer, token));
    if (logprobs == nullptr) {  // nothing comes before the first token of a prompt
      values.push_back(nullptr);
      tops.push_back(nullptr);
      return;
    }
    values.push_back(logprobs->chosen.logprob);
    Object top = Object::object();
    for (const core::TokenLogprob& other : logprobs->top)
      top[token_text(tokenizer, other.token)] = other.logprob;
    // The chosen token is among them, the best or not.
    if (!logprobs->top.empty()) top[token_text(tokenizer, token)] = logprobs->chosen.logprob;
    tops.push_back(std::move(top));
  }
  Object json() const {
    return {{"text_offset", offsets}, {"token_logprobs", values}, {"tokens", tokens}, {"top_logprobs", tops}};
  }

  const text::Tokenizer& tokenizer;
  Object offsets = Object::array(), tokens = Object::array(), values = Object::array(),
         tops = Object::array();
};

Object model_entry(const ServedModel& model, const std::string& name) {
  return {{"id", name},           {"object", "model"},           {"created", model.created},
          {"owned_by", "tercet"}, {"root", model.names.front()}, {"max_model_len", model.context_length}};
}

}  // namespace

// The pieces that bodies and stream parts are made of.
struct ResponseWriter::Json {
  const ResponseWriter& writer;

  Object envelope(const char* object) const {
    return {{"id", writer.id_},
            {"object", object},
            {"created", writer.created_},
            {"model", writer.model_.names.front()},
            {"system_fingerprint", writer.model_.fingerprint},
            {"choices", Object::array()}};
  }
  Object event_envelope() const {
    return envelope(writer.request_.is_chat ? "chat.completion.chunk" : "text_completion");
  }
  std::string choice_event(Object choice, const core::Usage* usage) const {
    Object object = event_envelope();
    object["choices"].push_back(std::move(choice));
    if (usage != nullptr) object["usage"] = usage_json(*usage);
    if (usage == nullptr && writer.request_.include_usage) object["usage"] = nullptr;
    return event(object);
  }

  // What stopped the answer, as vLLM says it: a stop string, a stop token, or null.
  Object stop_reason(const Choice& choice) const {
    const core::StopParams& stop = writer.request_.stop;
    if (choice.stop_string()) return stop.stop_strings[static_cast<size_t>(*choice.stop_string())];
    if (choice.finish() != core::FinishReason::kStop || !choice.last_token()) return nullptr;
    const bool listed =
        std::ranges::find(stop.stop_token_ids, *choice.last_token()) != stop.stop_token_ids.end();
    return listed ? Object(*choice.last_token()) : Object();
  }

  // `position` moves on over the tokens' text. With `echo` the prompt's tokens come first.
  Object logprobs(const ChoicePart& part, TextPosition& position, int prompt, bool echo) const {
    const text::Tokenizer& tokenizer = writer.model_.text.tokenizer;
    if (writer.request_.sampling.num_logprobs < 0) return nullptr;
    if (writer.request_.is_chat) return chat_logprobs(tokenizer, part.logprobs);
    position.text += part.text;
    CompletionLogprobs lists(tokenizer);
    if (echo) add_prompt(lists, part, position, prompt);
    for (const ShownToken& token : part.logprobs) {
      const int64_t size =
          std::min<int64_t>(token.text_offset - position.bytes, static_cast<int64_t>(position.text.size()));
      position.chars += count_chars(std::string_view(position.text).substr(0, static_cast<size_t>(size)));
      position.text.erase(0, static_cast<size_t>(size));
      position.bytes += size;
      lists.add(token.token, position.chars, &token.logprobs);
    }
    return lists.json();
  }
  void add_prompt(CompletionLogprobs& lists, const ChoicePart& part, TextPosition& position,
                  int prompt) const {
    const std::vector<core::TokenId>& tokens = writer.prompts_[static_cast<size_t>(prompt)];
    for (size_t i = 0; i < tokens.size(); ++i) {
      const bool scored = i > 0 && i - 1 < part.prompt_logprobs.size();
      lists.add(tokens[i], position.chars, scored ? &part.prompt_logprobs[i - 1] : nullptr);
      position.chars += count_chars(writer.model_.text.tokenizer.piece(tokens[i], {.skip_special = true}));
    }
  }
};

ResponseWriter::ResponseWriter(const GenerationRequest& request, const ServedModel& model,
                               const std::vector<std::vector<core::TokenId>>& prompts, std::string id)
    : request_(request),
      model_(model),
      prompts_(prompts),
      id_(std::move(id)),
      created_(unix_time()),
      positions_(prompts.size() * static_cast<size_t>(request.n)) {}

std::string ResponseWriter::prompt_text(int prompt) const {
  const Prompt& given = request_.prompts[static_cast<size_t>(prompt)];
  if (const auto* text = std::get_if<std::string>(&given)) return *text;
  return model_.text.tokenizer.decode(std::get<std::vector<core::TokenId>>(given), {.skip_special = true});
}

std::string ResponseWriter::body(const std::vector<FinishedChoice>& choices, const core::Usage& usage) const {
  const Json json{*this};
  Object object = json.envelope(request_.is_chat ? "chat.completion" : "text_completion");
  for (size_t i = 0; i < choices.size(); ++i) {
    const auto& [answer, whole, prompt] = choices[i];
    TextPosition position;
    Object choice = {{"index", i}};
    if (request_.is_chat) {
      choice["message"] = {{"role", "assistant"}, {"content", whole.text}, {"refusal", nullptr}};
    } else {
      choice["text"] = (request_.echo ? prompt_text(prompt) : "") + whole.text;
    }
    choice["logprobs"] = json.logprobs(whole, position, prompt, request_.echo);
    choice["finish_reason"] = finish_name(whole.finish);
    choice["stop_reason"] = json.stop_reason(*answer);
    if (request_.return_token_ids) {
      choice["prompt_token_ids"] = prompts_[static_cast<size_t>(prompt)];
      choice["token_ids"] = whole.token_ids;
    }
    object["choices"].push_back(std::move(choice));
  }
  object["usage"] = usage_json(usage);
  return dump(object);
}

std::string ResponseWriter::first_part(int index, const core::Usage* usage) {
  if (!request_.is_chat) return "";
  return Json{*this}.choice_event({{"index", index},
                                   {"delta", {{"role", "assistant"}, {"content", ""}}},
                                   {"logprobs", nullptr},
                                   {"finish_reason", nullptr}},
                                  usage);
}

std::string ResponseWriter::part(int index, const Choice& choice, const ChoicePart& part,
                                 const core::Usage* usage) {
  const Json json{*this};
  TextPosition& position = positions_[static_cast<size_t>(index)];
  const bool begins = request_.echo && !std::exchange(position.begun, true);
  std::string events;
  Object logprobs = json.logprobs(part, position, prompt_of(index), begins);
  Object object = {{"index", index}};
  if (request_.is_chat) {
    object["delta"] = part.text.empty() ? Object::object() : Object{{"content", part.text}};
  } else {
    object["text"] = (begins ? prompt_text(prompt_of(index)) : "") + part.text;
  }
  object["logprobs"] = std::move(logprobs);
  object["finish_reason"] = nullptr;
  if (request_.return_token_ids) object["token_ids"] = part.token_ids;
  // A chat's last part says why it ended and nothing else.
  if (request_.is_chat && part.finish &&
      !(part.text.empty() && part.logprobs.empty() && part.token_ids.empty())) {
    events = json.choice_event(object, usage);
    object["delta"] = Object::object();
    object["logprobs"] = nullptr;
    if (request_.return_token_ids) object["token_ids"] = Object::array();
  }
  object["finish_reason"] = finish_name(part.finish);
  if (part.finish) object["stop_reason"] = json.stop_reason(choice);
  return events + json.choice_event(std::move(object), usage);
}

std::string ResponseWriter::usage_part(const core::Usage& usage) const {
  Object object = Json{*this}.event_envelope();
  object["usage"] = usage_json(usage);
  return event(object);
}

std::string models_body(const ServedModel& model) {
  Object list = {{"object", "list"}, {"data", Object::array()}};
  for (const std::string& name : model.names) list["data"].push_back(model_entry(model, name));
  return dump(list);
}

std::string model_body(const ServedModel& model, const std::string& name) {
  return dump(model_entry(model, name));
}

std::string tokenize_body(const std::vector<core::TokenId>& tokens, const ServedModel& model,
                          bool with_texts) {
  Object object = {{"tokens", tokens}, {"count", tokens.size()}, {"max_model_len", model.context_length}};
  if (with_texts) {
    object["token_strs"] = Object::array();
    for (const core::TokenId token : tokens)
      object["token_strs"].push_back(token_text(model.text.tokenizer, token));
  }
  return dump(object);
}

std::string tokenizer_info_body(const ServedModel& model) {
  const text::ModelText& text = model.text;
  Object object = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                   {"vocab_size", text.tokenizer.vocab_size()},
                   {"model_max_length", model.context_length},
                   {"add_bos_token", text.tokenizer.adds_bos()}};
  for (const auto& [name, token] : text.special_tokens) object[name] = token;
  if (text.chat_template) object["chat_template"] = text.chat_template->source();
  return dump(object);
}

std::string detokenize_body(const std::string& text) { return dump({{"prompt", text}, {"content", text}}); }

}  // namespace tercet::server
