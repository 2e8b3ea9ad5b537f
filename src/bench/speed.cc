#include "bench/speed.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <set>

#include "bench/bandwidth.h"

namespace tercet::bench {
namespace {

using Clock = std::chrono::steady_clock;

core::Request random_request(uint64_t id, int vocab, const SpeedOptions& options) {
  std::mt19937_64 random(id);
  core::Request request;
  request.id = id;
  request.sampling.temperature = 0;
  request.stop.ignore_eos = true;
  request.stop.max_tokens = options.new_tokens;
  for (int i = 0; i < options.prompt_tokens; ++i)
    request.prompt.push_back(static_cast<core::TokenId>(random() % static_cast<uint64_t>(vocab)));
  return request;
}

// Adds one repetition's prompt and generation speed.
Status run_once(engine::Engine& engine, uint64_t first_id, int vocab, const SpeedOptions& options,
                SpeedResult& result) {
  const auto start = Clock::now();
  auto all_started = start;
  std::set<uint64_t> started;
  int64_t generated = 0;  // once all had started
  for (int i = 0; i < options.sequences; ++i)
    TERCET_TRY(engine.add(random_request(first_id + static_cast<uint64_t>(i), vocab, options)));
  while (engine.busy()) {
    const bool all = static_cast<int>(started.size()) == options.sequences;
    TERCET_ASSIGN(const std::vector<core::TokenEvent> events, engine.step());
    for (const core::TokenEvent& event : events) {
      if (event.finish == core::FinishReason::kError) return Error{ErrorCode::kInternal, event.error, {}};
      if (!event.token) continue;
      started.insert(event.request_id);
      generated += all ? 1 : 0;
    }
    if (!all && static_cast<int>(started.size()) == options.sequences) all_started = Clock::now();
  }
  const auto seconds = [](Clock::duration time) { return std::chrono::duration<double>(time).count(); };
  result.prompt_speed.push_back(options.prompt_tokens * options.sequences / seconds(all_started - start));
  if (generated > 0)
    result.generation_speed.push_back(static_cast<double>(generated) / seconds(Clock::now() - all_started));
  return {};
}

// The output layer reads the whole embedding where the two are tied; else a token reads one row of it. Of the
// experts it reads those that it is routed to.
int64_t weight_bytes_per_token(const model::Decoder& decoder) {
  const model::DecoderWeights& weights = decoder.weights();
  int64_t bytes = weights.bytes - (weights.output == nullptr ? 0 : weights.embedding->bytes());
  if (const auto& moe = decoder.spec().moe)
    bytes -=
        weights.expert_bytes / moe->router.num_experts * (moe->router.num_experts - moe->router.num_used);
  return bytes;
}

// A prompt's token passes all layers; the output layer is computed for the last one only.
int64_t operations_per_token(const model::Decoder& decoder) {
  const model::DecoderWeights& weights = decoder.weights();
  int64_t elements = weights.elements - weights.embedding->outputs() * weights.embedding->inputs();
  if (weights.output != nullptr) elements -= weights.output->outputs() * weights.output->inputs();
  if (const auto& moe = decoder.spec().moe)
    elements -=
        weights.expert_elements / moe->router.num_experts * (moe->router.num_experts - moe->router.num_used);
  return 2 * elements;
}

int64_t kv_bytes_per_token(const engine::Llm& llm, int context) {
  int64_t bytes = 0;
  const auto& spec = llm.decoder().spec();
  for (int layer = 0; layer < spec.num_layers(); ++layer) {
    const int window = spec.layers[static_cast<size_t>(layer)].window;
    const int read = window == 0 ? context : std::min(context, window);
    bytes += backend::kv_block_bytes(spec.kv_layer(layer), llm.kv_type()) / kv::kBlockTokens * read;
  }
  return bytes;
}

}  // namespace

Spread spread(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {values.front(), values[values.size() / 2], values.back()};
}

double bandwidth_fraction(const SpeedResult& result) {
  std::vector<double> fractions;
  for (size_t i = 0; i < result.generation_speed.size(); ++i)
    fractions.push_back(result.bytes_per_token * result.generation_speed[i] / result.read_bandwidth[i]);
  return spread(fractions).median;
}

double multiply_fraction(const SpeedResult& result, double peak_operations) {
  return spread(result.prompt_speed).median * result.operations_per_token / peak_operations;
}

Result<SpeedResult> measure_speed(engine::Llm& llm, const SpeedOptions& options, uint64_t first_id) {
  TERCET_ASSIGN(const BandwidthProbe probe, BandwidthProbe::create(llm.threads().num_threads()));
  SpeedResult result;
  result.bytes_per_token =
      static_cast<double>(weight_bytes_per_token(llm.decoder())) / options.sequences +
      static_cast<double>(kv_bytes_per_token(llm, options.prompt_tokens + options.new_tokens / 2));
  result.operations_per_token = static_cast<double>(operations_per_token(llm.decoder()));
  for (int i = 0; i < options.repetitions; ++i) {
    result.read_bandwidth.push_back(probe.measure());
    TERCET_TRY(run_once(llm.engine(), first_id + static_cast<uint64_t>(i * options.sequences),
                        llm.decoder().spec().vocab_size, options, result));
  }
  return result;
}

}  // namespace tercet::bench
