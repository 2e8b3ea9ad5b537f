#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "base/check.h"
#include "sample/logprobs.h"
#include "sample/params.h"

namespace tercet::engine {
namespace {

// Changes whenever the arithmetic does, so that cached and transferred KV is never mixed with another
// definition's.
constexpr std::string_view kArithmeticVersion = "1";

std::vector<kv::KvGroupSpec> sized_groups(const model::DecoderSpec& spec, const EngineOptions& options) {
  std::vector<kv::KvGroupSpec> groups = spec.kv_groups;
  const int full = kv::blocks_for_tokens(options.num_kv_tokens);
  const int sequences = options.scheduler.max_sequences;
  for (kv::KvGroupSpec& group : groups) {
    // A window's blocks twice, so that the last turn's stay cached beside the next one's.
    const int peak = kv::peak_blocks(group, options.context_length, options.scheduler.prefill_budget);
    group.num_blocks =
        group.kind == kv::GroupKind::kSlidingWindow ? std::min(full, 2 * sequences * peak) : full;
  }
  return groups;
}

// `values` has `width` for each of `rows`: those of `row`; empty for one that is not among them.
std::span<const float> values_of(std::span<const float> values, int width, std::span<const int32_t> rows,
                                 int row) {
  const auto found = std::lower_bound(rows.begin(), rows.end(), row);
  if (found == rows.end() || *found != row) return {};
  return values.subspan(static_cast<size_t>(found - rows.begin()) * static_cast<size_t>(width),
                        static_cast<size_t>(width));
}

bool contains(std::span<const core::TokenId> tokens, core::TokenId token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

uint64_t random_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

std::string kv_salt(const EngineOptions& options, int rope_variant) {
  return fmt::format("arithmetic {}, kv type {}, rope {}", kArithmeticVersion,
                     static_cast<int>(options.kv_type), rope_variant);
}

Engine::Engine(const model::Decoder& decoder, const text::Tokenizer& tokenizer, backend::Device& device,
               ThreadPool& threads, const EngineOptions& options)
    : decoder_(decoder),
      tokenizer_(tokenizer),
      options_(options),
      kv_(sized_groups(decoder.spec(), options), options.prefix_caching),
      scheduler_(options.scheduler, &kv_),
      context_(device, threads),
      start_(std::chrono::steady_clock::now()) {}

Result<std::unique_ptr<Engine>> Engine::create(const model::Decoder& decoder,
                                               const text::Tokenizer& tokenizer, backend::Device& device,
                                               ThreadPool& threads, const EngineOptions& options) {
  TERCET_CHECK(options.context_length > 0 && options.num_kv_tokens >= options.context_length);
  TERCET_TRY(sched::check_options(options.scheduler));
  auto engine = std::unique_ptr<Engine>(new Engine(decoder, tokenizer, device, threads, options));
  std::vector<int> group_blocks;
  for (const kv::KvGroupSpec& group : engine->kv_.groups()) group_blocks.push_back(group.num_blocks);
  TERCET_ASSIGN(engine->store_, device.kv_store(decoder.kv_store_spec(group_blocks, options.kv_type)));
  return engine;
}

Status Engine::warm_up() {
  // It writes block 0, which nothing may hold or have registered.
  TERCET_CHECK(!busy() && scheduler_.stats().num_prompt_tokens == 0);
  kv::StepBatch batch;
  batch.tokens.assign(kv::kBlockTokens, 0);
  for (int i = 0; i < kv::kBlockTokens; ++i) batch.positions.push_back(i);
  batch.sequences = {{0, kv::kBlockTokens, 0, 0, 0}};
  batch.groups.assign(kv_.groups().size(), {{0}, {0, 1}, {0}});
  batch.wanted_rows = {kv::kBlockTokens - 1};
  TERCET_TRY(decoder_.forward(context_, *store_, batch));
  return {};
}

sched::Microseconds Engine::now() const {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start_)
      .count();
}

Status Engine::add(core::Request request) {
  const auto refuse = [](std::string where, std::string message) {
    return Error{ErrorCode::kInvalidArgument, std::move(message), std::move(where)};
  };
  TERCET_TRY(sample::validate(request.sampling, decoder_.spec().vocab_size));
  if (request.prompt.empty()) return refuse("prompt", "is empty: there is nothing to continue");
  for (core::TokenId token : request.prompt)
    if (token < 0 || token >= decoder_.spec().vocab_size)
      return refuse("prompt", fmt::format("token {} is outside the vocabulary of {}", token,
                                          decoder_.spec().vocab_size));
  const int prompt_size = static_cast<int>(request.prompt.size());
  if (request.embedding) request.stop.max_tokens = 0;
  const bool answers = request.stop.max_tokens != 0;
  if (prompt_size + (answers ? 1 : 0) > options_.context_length)
    return refuse("prompt",
                  fmt::format("has {} tokens, the context holds {}{}", prompt_size, options_.context_length,
                              answers ? ", and the answer needs room in it" : ""));
  if (sequences_.contains(request.id)) return refuse("id", fmt::format("{} is running already", request.id));

  const int room = options_.context_length - prompt_size;
  if (request.stop.max_tokens < 0 || request.stop.max_tokens > room) request.stop.max_tokens = room;
  sched::SequenceInfo info;
  info.rope_variant = decoder_.spec().rope_variant(prompt_size + request.stop.max_tokens);
  const std::string settings = kv_salt(options_, info.rope_variant);
  const std::string_view salt_parts[] = {settings, request.cache_salt};
  info.id = request.id;
  info.prompt = request.prompt;
  info.max_new_tokens = request.stop.max_tokens;
  info.priority = request.priority;
  info.salt = kv::make_salt(salt_parts);
  info.want_all_rows = request.embedding ? *request.embedding == core::Pooling::kMean
                                         : request.sampling.num_prompt_logprobs >= 0;
  TERCET_TRY(scheduler_.add(std::move(info), now()));

  Sequence sequence{.request = std::move(request),
                    .detokenizer = text::Detokenizer(tokenizer_, {.skip_special = true})};
  sequence.seed = sequence.request.sampling.seed.value_or(random_seed());
  sequence.sampler = sample::SamplerState(sequence.request.prompt);
  sequence.stop_matcher = text::StopMatcher(sequence.request.stop.stop_strings);
  sequences_.emplace(sequence.request.id, std::move(sequence));
  return {};
}

void Engine::abort(uint64_t request_id) {
  const auto found = sequences_.find(request_id);
  if (found == sequences_.end()) return;
  scheduler_.abort(request_id);
  core::TokenEvent event;
  event.request_id = request_id;
  finish(found->second, core::FinishReason::kAborted, event);
  pending_events_.push_back(std::move(event));
  sequences_.erase(found);
}

Result<std::vector<core::TokenEvent>> Engine::step() {
  std::vector<core::TokenEvent> events = std::exchange(pending_events_, {});
  sched::StepPlan plan = scheduler_.schedule(now());
  divide_wanted_rows(plan);
  if (plan.sequences.empty()) {
    context_.stream->prepare_kv(*store_, plan.batch);
    return events;
  }

  if (const Status ran = run(plan); !ran.ok()) {
    scheduler_.commit({});
    for (const sched::PlannedSequence& planned : plan.sequences) fail(planned.id, ran.error(), events);
    return events;
  }
  std::vector<sched::SequenceResult> results;
  for (const sched::PlannedSequence& planned : plan.sequences)
    results.push_back(commit(plan, planned, events));
  scheduler_.commit(results);
  return events;
}

// Of the rows that the scheduler wants, those of requests for embeddings are wanted as hidden states.
void Engine::divide_wanted_rows(sched::StepPlan& plan) const {
  std::vector<int32_t> logit_rows;
  auto planned = plan.sequences.begin();
  for (const int32_t row : plan.batch.wanted_rows) {
    while (row >= planned->first_row + planned->num_tokens + planned->num_drafts) ++planned;
    const bool embeds = sequences_.at(planned->id).request.embedding.has_value();
    (embeds ? plan.batch.hidden_rows : logit_rows).push_back(row);
  }
  plan.batch.wanted_rows = std::move(logit_rows);
}

// Leaves the logits of the plan's wanted rows in logits_, the hidden states of its hidden rows in hidden_.
Status Engine::run(const sched::StepPlan& plan) {
  const auto keep = [&](const backend::Matrix& from, std::vector<float>& to) {
    to.resize(static_cast<size_t>(from.rows * from.cols));
    context_.stream->download(from, to);
  };
  model::ForwardObserver observer;
  observer.last_hidden = [&](const backend::Matrix& rows) { keep(rows, hidden_); };
  TERCET_ASSIGN(const backend::Matrix logits, decoder_.forward(context_, *store_, plan.batch, observer));
  keep(logits, logits_);
  return {};
}

// The logits of a row of the plan; empty for one that is not wanted.
std::span<const float> Engine::logits_of(const sched::StepPlan& plan, int row) const {
  return values_of(logits_, decoder_.spec().vocab_size, plan.batch.wanted_rows, row);
}

// Row by row in the order of positions, so that chunks do not show in the sum.
void Engine::pool(const sched::StepPlan& plan, const sched::PlannedSequence& planned,
                  Sequence& sequence) const {
  if (!sequence.request.embedding) return;
  sequence.hidden_sum.resize(static_cast<size_t>(decoder_.spec().dim));
  for (int row = planned.first_row; row < planned.first_row + planned.num_tokens; ++row) {
    const auto hidden = values_of(hidden_, decoder_.spec().dim, plan.batch.hidden_rows, row);
    for (size_t i = 0; i < hidden.size(); ++i) sequence.hidden_sum[i] += hidden[i];
  }
}

// The log-probabilities of the prompt's tokens that follow the planned rows, as far as these are wanted: a
// prompt that is computed again after a preemption has had them.
Status Engine::score_prompt(const sched::StepPlan& plan, const sched::PlannedSequence& planned,
                            std::vector<core::TokenEvent>& events) const {
  const core::Request& request = sequences_.at(planned.id).request;
  if (request.embedding || request.sampling.num_prompt_logprobs < 0) return {};
  core::TokenEvent event;
  event.request_id = planned.id;
  const int last =
      std::min(planned.num_tokens, static_cast<int>(request.prompt.size()) - 1 - planned.first_position);
  for (int i = 0; i < last; ++i) {
    const std::span<const float> logits = logits_of(plan, planned.first_row + i);
    if (logits.empty()) continue;
    const int position = planned.first_position + i + 1;
    TERCET_ASSIGN(sample::Logprobs scored,
                  sample::logprobs(logits, request.prompt[static_cast<size_t>(position)],
                                   request.sampling.num_prompt_logprobs, position));
    event.prompt_logprobs.push_back({scored.chosen, std::move(scored.top)});
  }
  if (!event.prompt_logprobs.empty()) events.push_back(std::move(event));
  return {};
}

sched::SequenceResult Engine::commit(const sched::StepPlan& plan, const sched::PlannedSequence& planned,
                                     std::vector<core::TokenEvent>& events) {
  sched::SequenceResult result;
  result.id = planned.id;
  result.num_computed = planned.num_tokens;
  Sequence& sequence = sequences_.at(planned.id);
  sequence.num_cached_tokens = planned.num_cached;
  core::TokenEvent event;
  event.request_id = planned.id;
  const Status scored = score_prompt(plan, planned, events);
  pool(plan, planned, sequence);
  const int num_known = planned.first_position + planned.num_tokens;
  const bool only_computes = sequence.request.stop.max_tokens == 0;
  const bool ends_prompt = num_known >= static_cast<int>(sequence.request.prompt.size());
  if (scored.ok() && !planned.samples && !(only_computes && ends_prompt)) return result;

  if (!scored.ok()) {
    event.error = scored.error().to_string();
    finish(sequence, core::FinishReason::kError, event);
  } else if (only_computes) {
    finish_prompt(sequence, event);
  } else {
    const std::vector<core::TokenId> banned = banned_tokens(sequence);
    sample::SampleContext context;
    context.position = num_known;
    context.seed = sequence.seed;
    context.banned = banned;
    const std::span<const float> logits = logits_of(plan, planned.first_row + planned.num_tokens - 1);
    auto sampled = sample::sample(logits, sequence.request.sampling, sequence.sampler, context, scratch_);
    if (sampled.ok()) {
      result.new_tokens = {sampled->token};
      event.logprob = sampled->logprob;
      event.top_logprobs = std::move(sampled->top_logprobs);
      commit_token(sequence, sampled->token, event);
    } else {
      event.error = sampled.error().to_string();
      finish(sequence, core::FinishReason::kError, event);
    }
  }
  result.finished = event.finish.has_value();
  if (result.finished) sequences_.erase(planned.id);
  events.push_back(std::move(event));
  return result;
}

void Engine::commit_token(Sequence& sequence, core::TokenId token, core::TokenEvent& event) {
  const core::StopParams& stop = sequence.request.stop;
  event.token = token;
  sequence.sampler.push(token);
  ++sequence.num_output_tokens;
  const bool ends =
      contains(stop.stop_token_ids, token) || (!stop.ignore_eos && tokenizer_.is_end_token(token));
  event.text_offset = sequence.text_size;
  if (!ends) {
    const std::string text = sequence.detokenizer.push(token);
    sequence.text_size += static_cast<int64_t>(text.size());
    const auto matched = sequence.stop_matcher.push(text);
    event.text = matched.text;
    event.stop_string = matched.matched;
    if (matched.matched.has_value()) return finish(sequence, core::FinishReason::kStop, event);
  }
  if (ends) return finish(sequence, core::FinishReason::kStop, event);
  if (sequence.num_output_tokens >= stop.max_tokens) finish(sequence, core::FinishReason::kLength, event);
}

// Adds the text that was held back, and what a last event says.
void Engine::finish(Sequence& sequence, core::FinishReason reason, core::TokenEvent& event) {
  event.text += sequence.stop_matcher.push(sequence.detokenizer.flush()).text;
  event.text += sequence.stop_matcher.flush();
  event.finish = reason;
  event.usage = core::Usage{static_cast<int>(sequence.request.prompt.size()), sequence.num_cached_tokens,
                            sequence.num_output_tokens};
}

// The end of a request whose answer has no tokens.
void Engine::finish_prompt(Sequence& sequence, core::TokenEvent& event) {
  const core::Request& request = sequence.request;
  if (!request.embedding) return finish(sequence, core::FinishReason::kLength, event);
  const bool is_mean = *request.embedding == core::Pooling::kMean;
  const auto count = static_cast<float>(is_mean ? request.prompt.size() : 1);
  event.embedding = std::move(sequence.hidden_sum);
  for (float& value : event.embedding) value /= count;
  finish(sequence, core::FinishReason::kStop, event);
}

core::GeneratorStats Engine::stats() const {
  const sched::SchedulerStats scheduler = scheduler_.stats();
  core::GeneratorStats stats;
  stats.num_waiting = scheduler.num_waiting + scheduler.num_waiting_for_kv;
  stats.num_running = scheduler.num_running + scheduler.num_draining;
  for (int group = 0; group < static_cast<int>(kv_.groups().size()); ++group) {
    const kv::BlockPool& pool = kv_.pool(group);
    stats.kv_usage = std::max(stats.kv_usage, static_cast<double>(pool.num_used()) / pool.num_blocks());
  }
  stats.num_preemptions = scheduler.num_preemptions;
  stats.num_prompt_tokens = scheduler.num_prompt_tokens;
  stats.num_cached_tokens = scheduler.num_cached_tokens;
  return stats;
}

void Engine::fail(uint64_t request_id, const Error& error, std::vector<core::TokenEvent>& events) {
  scheduler_.abort(request_id);
  core::TokenEvent event;
  event.request_id = request_id;
  event.error = error.to_string();
  finish(sequences_.at(request_id), core::FinishReason::kError, event);
  events.push_back(std::move(event));
  sequences_.erase(request_id);
}

// End tokens, until min_tokens are out.
std::vector<core::TokenId> Engine::banned_tokens(const Sequence& sequence) const {
  const core::StopParams& stop = sequence.request.stop;
  std::vector<core::TokenId> banned;
  if (sequence.num_output_tokens >= stop.min_tokens) return banned;
  if (!stop.ignore_eos) banned.assign(tokenizer_.end_tokens().begin(), tokenizer_.end_tokens().end());
  banned.insert(banned.end(), stop.stop_token_ids.begin(), stop.stop_token_ids.end());
  return banned;
}

}  // namespace tercet::engine
