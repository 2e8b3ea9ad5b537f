// For tests: a request run to its end.
#pragma once

#include <gtest/gtest.h>

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

}  // namespace tercet::engine
