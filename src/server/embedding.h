// POST /v1/embeddings: a request as a value, and its way through the server. Each input is one request of the
// engine's; a bounded number of them is there at a time, so that a long list neither fills the queue nor
// holds up others.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "http/message.h"
#include "server/engine_host.h"
#include "server/openai_request.h"
#include "server/served_model.h"

namespace tercet::server {

struct EmbeddingRequest {
  std::string model;
  std::vector<Prompt> inputs;  // at least one
  bool add_special_tokens = true;
  bool base64 = false;  // little-endian float32 in base64; else an array of numbers
  int dimensions = 0;   // of the vectors, which are cut and normalised again; 0: all
  int priority = 0;
  std::string cache_salt;
};

// Errors: `where` names the field. A model whose pooling is not supported is one.
Result<EmbeddingRequest> parse_embedding(const Value& body, const ServedModel& model);

// The first `dimensions` values, or all (0), scaled to an L2 norm of 1; a zero vector stays one.
std::vector<float> normalized(std::vector<float> vector, int dimensions);

// Answers `exchange`, now or later. `inputs`: the tokens of each. A client that goes away aborts what runs
// for it. The references outlive the answer.
void start_embedding(std::shared_ptr<http::Exchange> exchange, EngineHost& host, Metrics& metrics,
                     const ServedModel& model, EmbeddingRequest request,
                     std::vector<std::vector<core::TokenId>> inputs);

}  // namespace tercet::server
