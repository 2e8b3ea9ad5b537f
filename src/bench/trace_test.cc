#include "bench/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace tercet::bench {
namespace {

using testing::HasSubstr;

Trace sample(const std::string& name) {
  const std::string path = TERCET_TEST_DATA "/traces/" + name;
  auto text = read_file(path);
  EXPECT_TRUE(text.ok());
  auto trace = parse_trace(*text, path);
  EXPECT_TRUE(trace.ok()) << trace.error().to_string();
  return *std::move(trace);
}

std::string parse_error(std::string_view text) {
  const auto trace = parse_trace(text, "file");
  return trace.ok() ? "" : trace.error().to_string();
}

TEST(Trace, ReadsMooncakes) {
  const Trace trace = sample("mooncake.jsonl");
  ASSERT_EQ(trace.requests.size(), 400u);
  EXPECT_EQ(trace.requests[0].prompt_tokens, 6758);
  EXPECT_EQ(trace.requests[0].new_tokens, 500);
  EXPECT_EQ(trace.requests[0].blocks.size(), 14u);
  EXPECT_GT(trace.requests.back().start, 60);
}

TEST(Trace, ReadsAzures) {
  const Trace trace = sample("azure.csv");
  ASSERT_EQ(trace.requests.size(), 1000u);
  EXPECT_EQ(trace.requests[1].prompt_tokens, 396);
  EXPECT_EQ(trace.requests[1].new_tokens, 109);
  EXPECT_NEAR(trace.requests[1].start, 4.314579, 1e-6);
}

TEST(Trace, CountsDaysAndSortsByTime) {
  const auto trace = parse_trace(
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
      "2024-03-01 00:00:01.5,7,1\r\n2024-02-28 23:59:59.0,5,2\r\n",
      "file");
  ASSERT_TRUE(trace.ok()) << trace.error().to_string();
  EXPECT_EQ(trace->requests[0].prompt_tokens, 5);
  EXPECT_EQ(trace->requests[1].start, 86'400 + 2.5);  // over the 29th of February
}

TEST(Trace, NamesTheLineThatIsNone) {
  const std::string azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  const std::string good = R"({"timestamp": 1, "input_length": 3, "output_length": 2, "hash_ids": [4]})";
  EXPECT_EQ(parse_error(good), "");
  EXPECT_THAT(parse_error(""), HasSubstr("holds no requests"));
  EXPECT_THAT(parse_error(good + "\n{}"), HasSubstr("file:2: is no request"));
  for (const char* line :
       {"2023-11-16 18:17:03.9", "2023-11-16 18:17:03.9,1", "2023-11-16 18:17:03.9,1,x",
        "2023-13-16 18:17:03.9,1,1", "2023-02-30 18:17:03,1,1", "today,1,1", "2023-11-16 18:17:03.9,0,1",
        "2023-11-16 18:17:03.9,1,-1", "2023-11-16 18:17:03.9,99999999999,1"}) {
    EXPECT_THAT(parse_error(azure + line), HasSubstr("file:2: is no request")) << line;
  }
  for (const char* line :
       {"[1]", R"({"timestamp": 1, "input_length": 3, "output_length": 2})",
        R"({"timestamp": 1, "input_length": 1e300, "output_length": 2, "hash_ids": [4]})",
        R"({"timestamp": 1, "input_length": 513, "output_length": 2, "hash_ids": [4]})",
        R"({"timestamp": 1, "input_length": 3, "output_length": 2, "hash_ids": [4, 5]})",
        R"({"timestamp": 1, "input_length": 3, "output_length": 2, "hash_ids": [-4]})",
        R"({"timestamp": 1, "input_length": 3, "output_length": 2, "hash_ids": {"a": 1}})"}) {
    EXPECT_THAT(parse_error(line), HasSubstr("file:1: is no request")) << line;
  }
}

TEST(Trace, EqualBlocksAreEqualTokens) {
  for (const int shrink : {1, 3, 8, 1000}) {
    const Trace trace = scaled(sample("mooncake.jsonl"), {1, 40, shrink});
    ASSERT_EQ(trace.requests.size(), 40u);
    for (size_t i = 1; i < trace.requests.size(); ++i) {
      const std::vector<int32_t> one = trace_prompt(trace, i - 1), two = trace_prompt(trace, i);
      ASSERT_EQ(static_cast<int>(two.size()), trace.requests[i].prompt_tokens);
      const auto &a = trace.requests[i - 1].blocks, &b = trace.requests[i].blocks;
      size_t shared = 0;
      while (shared < std::min(a.size(), b.size()) && a[shared] == b[shared]) ++shared;
      const size_t tokens = shared * static_cast<size_t>(trace.block_tokens);
      const size_t common = std::mismatch(one.begin(), one.end(), two.begin(), two.end()).first - one.begin();
      // One prompt may be the whole beginning of the other.
      ASSERT_GE(common, std::min({tokens, one.size(), two.size()}));
      if (shrink == 1 && shared < std::min(a.size(), b.size())) {
        ASSERT_LT(common, tokens + 4) << "other blocks have other tokens";
      }
    }
  }
}

TEST(Trace, IsScaled) {
  const Trace whole = sample("azure.csv");
  const Trace trace = scaled(whole, {4, 10, 2});
  ASSERT_EQ(trace.requests.size(), 10u);
  EXPECT_EQ(trace.requests[9].start, whole.requests[9].start / 4);
  EXPECT_EQ(trace.requests[9].prompt_tokens, whole.requests[9].prompt_tokens / 2);
  EXPECT_EQ(scaled(whole, {1, 1, 1 << 20}).requests[0].prompt_tokens, 1);
}

}  // namespace
}  // namespace tercet::bench
