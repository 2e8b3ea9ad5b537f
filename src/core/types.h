// The nouns of the engine: what a caller asks for and what it gets back, token by token. Plain values; no
// tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tercet::core {

using TokenId = int32_t;

// How the next token is chosen. The order in which the fields act, and their definitions: docs/sampling.md.
// Defaults change nothing: the raw distribution.
struct SamplingParams {
  float temperature = 1.0f;         // 0: greedy (argmax, lowest id wins a tie)
  int top_k = 0;                    // keep the k most likely; 0: all
  float top_p = 1.0f;               // keep the smallest set whose probability reaches top_p; 1: all
  float min_p = 0.0f;               // keep tokens with p >= min_p * max p; 0: all
  float typical_p = 1.0f;           // locally typical sampling; 1: all
  float repetition_penalty = 1.0f;  // over prompt and output
  float presence_penalty = 0.0f;    // over output
  float frequency_penalty = 0.0f;   // over output, times the count
  std::vector<std::pair<TokenId, float>> logit_bias;
  std::optional<uint64_t> seed;  // absent: the engine draws one
  int num_logprobs = -1;         // -1: none; 0: the chosen token's; n: the n best besides
  int num_prompt_logprobs = -1;  // the same for the prompt's tokens after the first
};

// When to stop, besides the model's own end tokens.
struct StopParams {
  int max_tokens = -1;  // -1: until the context is full
  int min_tokens = 0;   // end tokens are not sampled before
  bool ignore_eos = false;
  std::vector<std::string> stop_strings;
  std::vector<TokenId> stop_token_ids;
};

// How the hidden states of a prompt's tokens become one vector, its embedding.
enum class Pooling : uint8_t {
  kLast,  // the last token's
  kMean,  // their mean
};

struct Request {
  uint64_t id = 0;
  std::vector<TokenId> prompt;
  SamplingParams sampling;
  StopParams stop;
  int priority = 0;        // lower runs first
  std::string cache_salt;  // requests share cached prefixes only within one salt
  // The answer is an embedding of the prompt; `sampling` and `stop` do not count.
  std::optional<Pooling> embedding;
};

enum class FinishReason {
  kStop,    // a stop string, an end token, a stop token; an embedding is there
  kLength,  // max_tokens, or the context is full
  kAborted,
  kError,
};

struct TokenLogprob {
  TokenId token = 0;
  float logprob = 0;  // natural logarithm, of the raw logits
};

struct Usage {
  int num_prompt_tokens = 0;
  int num_cached_tokens = 0;  // of the prompt, found in the prefix cache
  int num_output_tokens = 0;
};

// A token's log-probability beside those of the best tokens at its place, best first.
struct TokenLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;
};

// One committed token, a part of the prompt's log-probabilities, or the end of a request. Events of a request
// arrive in order; exactly one has `finish`.
struct TokenEvent {
  uint64_t request_id = 0;
  std::optional<TokenId> token;  // absent on an event that only ends the request
  std::string text;              // complete characters that this token released; may be empty
  // Bytes of the answer before this token's text, what is held back included: a token whose offset the
  // released text has not passed is still to be shown, or is part of a stop string.
  int64_t text_offset = 0;
  std::optional<TokenLogprob> logprob;
  std::vector<TokenLogprob> top_logprobs;
  // With num_prompt_logprobs: the next tokens of the prompt, from its second on. All come before the first
  // token.
  std::vector<TokenLogprobs> prompt_logprobs;
  // [dim] The pooled hidden states after the model's last norm; with `finish`, where the request asks for it.
  std::vector<float> embedding;
  std::optional<FinishReason> finish;
  std::optional<int> stop_string;  // with FinishReason::kStop: the index of the stop string that was found
  std::string error;               // with FinishReason::kError
  std::optional<Usage> usage;      // with `finish`
};

}  // namespace tercet::core
