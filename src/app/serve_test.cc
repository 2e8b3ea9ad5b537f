#include "app/serve.h"

#include <gtest/gtest.h>

namespace tercet::app {
namespace {

TEST(Serve, TheLoadLineSaysWhatHappenedSinceTheLast) {
  ServerTotals before, now;
  before.num_prompt_tokens = 100;
  before.num_generated_tokens = 50;
  before.engine.num_prompt_tokens = 100;
  now.num_prompt_tokens = 300;
  now.num_generated_tokens = 75;
  now.engine = {2, 3, 0.125, 0, 300, 50};
  EXPECT_EQ(
      load_line(before, now, 10),
      "3 running, 2 waiting, KV 12.5 % used, prompt 20.0 tokens/s, generation 2.5 tokens/s, prefix cache "
      "25.0 % hits");
  now.engine.num_prompt_tokens = 100;
  now.engine.num_preemptions = 4;
  EXPECT_EQ(
      load_line(before, now, 10),
      "3 running, 2 waiting, KV 12.5 % used, prompt 20.0 tokens/s, generation 2.5 tokens/s, 4 preempted");
}

}  // namespace
}  // namespace tercet::app
