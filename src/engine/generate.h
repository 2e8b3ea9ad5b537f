// For tests: a request run to its end.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace tercet::engine {

inline std::vector<int32_t> generate(Engine& engine, core::Request request, core::Usage* usage = nullptr) {
  EXPECT_TRUE(engine.add(request).ok());
  std::vector<int32_t> tokens;
  while (engine.busy()) {
    const auto events = engine.step();
    EXPECT_TRUE(events.ok());
    for (const core::TokenEvent& event : *events) {
      if (event.request_id != request.id) continue;
      if (event.token) tokens.push_back(*event.token);
      if (event.usage && usage != nullptr) *usage = *event.usage;
    }
  }
  return tokens;
}

// The embeddings of requests that run together, by their ids.
inline std::map<uint64_t, std::vector<float>> embed(Engine& engine, std::vector<core::Request> requests) {
  for (core::Request& request : requests) EXPECT_TRUE(engine.add(std::move(request)).ok());
  std::map<uint64_t, std::vector<float>> embeddings;
  while (engine.busy()) {
    const auto events = engine.step();
    EXPECT_TRUE(events.ok());
    for (const core::TokenEvent& event : *events) {
      if (event.embedding.empty()) continue;
      EXPECT_EQ(event.finish, core::FinishReason::kStop);
      EXPECT_FALSE(event.token.has_value());
      embeddings[event.request_id] = event.embedding;
    }
  }
  return embeddings;
}

}  // namespace tercet::engine
